"""The types in which values are: fp16 where casts of a network show, or fp32."""
