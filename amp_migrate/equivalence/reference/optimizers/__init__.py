"""The loss scaler, and what AMP adds to an optimizer."""
