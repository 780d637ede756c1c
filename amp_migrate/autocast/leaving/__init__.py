"""What leaves the blocks of autocast in fp16, where Apex had fp32."""
