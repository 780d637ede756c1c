"""Whether the loss scale and its settings are those that Apex had, from then on when it had them."""
