"""Files as bytes and text: finding them, encodings, notebooks, and writing them back whole."""
