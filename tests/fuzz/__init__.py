"""Generated messages through derivation and projection, compiled and pure: `make fuzz`."""
