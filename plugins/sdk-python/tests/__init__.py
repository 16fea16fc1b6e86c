"""The SDK's tests: `python3 -m unittest` in the folder above."""
