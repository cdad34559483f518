#!/usr/bin/env python3
"""Independent slow oracle for proofs, cosignatures, tlog-proofs and witness requests: writes transparency.json.

The recursive definitions of RFC 9162 §2.1 and the texts of C2SP signed-note, tlog-cosignature, tlog-witness
and tlog-proof, with the Ed25519 of make_protocol.py beside it.

usage: make_transparency.py > transparency.json
"""
import hashlib, json, sys
sys.dont_write_bytecode = True
from make_protocol import b64, mth, public, sha, sign

ORIGIN, WITNESS = "minutebook.example/0123456789abcdef0123456789abcdef", "witness.example"
LOGKEY, WITNESSKEY = (hashlib.sha256(name).digest() for name in (b"log key", b"witness key"))
TIME = 1764432000
SIZES = [1, 2, 3, 7, 8, 255, 256, 257, 600]
LEAVES = [sha(b"\x00" + f"entry {i}".encode()) for i in range(max(SIZES))]


def split(n):
    k = 1
    while k * 2 < n:
        k *= 2
    return k


def path(m, d):
    if len(d) == 1:
        return []
    k = split(len(d))
    return path(m, d[:k]) + [mth(d[k:])] if m < k else path(m - k, d[k:]) + [mth(d[:k])]


def subproof(m, d, whole):
    if m == len(d):
        return [] if whole else [mth(d)]
    k = split(len(d))
    if m <= k:
        return subproof(m, d[:k], whole) + [mth(d[k:])]
    return subproof(m - k, d[k:], False) + [mth(d[:k])]


def key_id(name, kind, seed):
    return sha(name.encode() + b"\n" + bytes([kind]) + public(seed))[:4]


def vkey(name, kind, seed):
    return f"{name}+{key_id(name, kind, seed).hex()}+{b64(bytes([kind]) + public(seed))}"


def line(name, kind, seed, payload):
    return f"\u2014 {name} {b64(key_id(name, kind, seed) + payload)}\n"


def checkpoint(size):
    return f"{ORIGIN}\n{size}\n{b64(mth(LEAVES[:size]))}\n"


def signed(size):
    text = checkpoint(size)
    return text + "\n" + line(ORIGIN, 1, LOGKEY, sign(LOGKEY, text.encode()))


def cosignature(size, time):
    message = f"cosignature/v1\ntime {time}\n{checkpoint(size)}".encode()
    return line(WITNESS, 4, WITNESSKEY, time.to_bytes(8, "big") + sign(WITNESSKEY, message))


def hashes(proof):
    return "".join(b64(h) + "\n" for h in proof)


def add_checkpoint(old, size):
    proof = subproof(old, LEAVES[:size], True) if old else []
    return dict(old=str(old), size=str(size), body=f"old {old}\n{hashes(proof)}\n{signed(size)}")


def tlog_proof(index, size, extra=None):
    note = signed(size) + cosignature(size, TIME)
    head = "c2sp.org/tlog-proof@v1\n" + (f"extra {b64(extra)}\n" if extra else "")
    return dict(index=str(index), size=str(size), text=f"{head}index {index}\n{hashes(path(index, LEAVES[:size]))}\n{note}")


print(json.dumps(dict(
    source="test/vectors/make_transparency.py, an independent oracle in Python",
    entries="entry 0, entry 1 and so on, as UTF-8", origin=ORIGIN,
    log=dict(seed=LOGKEY.hex(), vkey=vkey(ORIGIN, 1, LOGKEY)),
    witness=dict(name=WITNESS, seed=WITNESSKEY.hex(), vkey=vkey(WITNESS, 4, WITNESSKEY)),
    roots=[dict(size=str(n), root=b64(mth(LEAVES[:n]))) for n in SIZES],
    inclusion=[dict(index=str(i), size=str(n), proof=[b64(h) for h in path(i, LEAVES[:n])])
               for n in SIZES for i in sorted({0, n // 2, n - 1})],
    consistency=[{"from": str(m), "to": str(n), "proof": [b64(h) for h in subproof(m, LEAVES[:n], True)]}
                 for n in SIZES for m in SIZES if m <= n],
    cosignatures=[dict(text=checkpoint(n), time=str(t), line=cosignature(n, t)) for n, t in [(1, 1), (600, TIME), (600, 2**63 - 1)]],
    add_checkpoint=[add_checkpoint(*sizes) for sizes in [(0, 7), (7, 8), (8, 8), (8, 256), (256, 257), (257, 600)]],
    tlog_proofs=[tlog_proof(0, 1), tlog_proof(255, 600), tlog_proof(599, 600, b"anything, not authenticated")],
), ensure_ascii=False, indent=1))
