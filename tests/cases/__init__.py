"""Cases that several parts of the product must answer alike."""
