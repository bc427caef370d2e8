"""Commands that ask the control plane, or tell it something by a record in its log."""
