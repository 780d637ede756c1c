"""`apex.fp16_utils`: conversion by hand and its optimizer."""
