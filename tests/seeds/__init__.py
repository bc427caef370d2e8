"""Each behaviour of the five seeds, with the seed's own numbers: `docs/SEEDS.md` shows them."""
