"""`apex.fp16_utils`: its optimizer, its networks in fp16, and master weights that a program keeps by hand."""
