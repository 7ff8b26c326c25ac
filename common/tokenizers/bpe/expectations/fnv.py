"""The hash of recorded expectations: 64-bit FNV-1a, as 16 hexadecimal digits."""


def hash_ids(ids):
    """Of ids as 32-bit little-endian numbers, one after another."""
    value = 0xCBF29CE484222325
    for number in ids:
        for byte in (number & 0xFFFFFFFF).to_bytes(4, "little"):
            value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return "%016x" % value
