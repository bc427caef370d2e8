"""`contextgauge what-if`: recorded sessions under other triggers, windows and strategies."""
