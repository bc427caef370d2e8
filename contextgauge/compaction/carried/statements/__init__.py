"""English rules for pins: which of a user's statements are kept, and which replace older ones.

`passages` cuts a turn into statements, `pin_kinds` sorts them, `subjects` finds what they are
about (`single_valued`: things with one value at a time, `english_values`: values in one form), and
`held_pins` holds the newest of each within bounds.
"""
