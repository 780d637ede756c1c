"""What the user sees: reports, patches and pages of text. Nothing else prints."""
