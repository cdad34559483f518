#!/usr/bin/env python3
"""Independent slow oracle for docs/report-protocol.md and docs/log-format.md: writes protocol.json.

Python 3 without packages: Ed25519 by the formulas of RFC 8032 §5.1, canonical JSON by sorted keys (ASCII
names and no numbers, so sorting by code point is sorting by UTF-16 unit), charges by fractions.

usage: make_protocol.py > protocol.json
"""
import base64, hashlib, json
from fractions import Fraction

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def recover_x(y, sign):
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    return P - x if (x & 1) != sign else x


BY = 4 * pow(5, P - 2, P) % P
BASE = (recover_x(BY, 0), BY)


def add(p, q):
    (x1, y1), (x2, y2) = p, q
    k = D * x1 * x2 * y1 * y2 % P
    return ((x1 * y2 + x2 * y1) * pow(1 + k, P - 2, P) % P, (y1 * y2 + x1 * x2) * pow(1 - k, P - 2, P) % P)


def mul(n, p):
    q = (0, 1)
    while n:
        if n & 1:
            q = add(q, p)
        p, n = add(p, p), n >> 1
    return q


def encode(p):
    return (p[1] | (p[0] & 1) << 255).to_bytes(32, "little")


def expand(seed):
    h = hashlib.sha512(seed).digest()
    a = int.from_bytes(h[:32], "little") & ((1 << 254) - 8) | 1 << 254
    return a, h[32:]


def public(seed):
    return encode(mul(expand(seed)[0], BASE))


def sign(seed, message):
    a, prefix = expand(seed)
    r = int.from_bytes(hashlib.sha512(prefix + message).digest(), "little") % L
    big_r = encode(mul(r, BASE))
    k = int.from_bytes(hashlib.sha512(big_r + public(seed) + message).digest(), "little") % L
    return big_r + ((r + k * a) % L).to_bytes(32, "little")


def b64(b):
    return base64.b64encode(b).decode()


def b64url(b):
    return base64.urlsafe_b64encode(b).decode().rstrip("=")


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha(b):
    return hashlib.sha256(b).digest()


def kid_of(pub):
    return b64url(sha(canonical(dict(crv="Ed25519", kty="OKP", x=b64url(pub))).encode()))


def jws(seed, typ, payload):
    header = canonical(dict(alg="Ed25519", kid=kid_of(public(seed)), typ=typ))
    signed = b64url(header.encode()) + "." + b64url(canonical(payload).encode())
    return signed + "." + b64url(sign(seed, signed.encode()))


RUNNER, NEXT, LOGKEY = (hashlib.sha256(name).digest() for name in (b"runner", b"successor", b"log key"))
LOG = "0123456789abcdef0123456789abcdef"
UUID = "9b2d7c1e-5a54-4f0e-8f0b-2f6d3c1a7e10"
TOKEN = "dG9rZW4gb2YgdGhlIGV4YW1wbGU"
T = "2026-11-05T12:00:00.000Z"


def salt(n):
    return b64(bytes([n]) * 16)


def key_of(seed):
    return dict(crv="Ed25519", kty="OKP", x=b64url(public(seed)))


report = dict(counter="1", id="018f5a74-fbe9-758c-b036-864bedb98114", issued_at="2026-11-05T12:13:00.250Z",
              job=dict(id="9007199254740993", pipeline_id="3000000228", project_id="50010", root_namespace_id="1001"),
              log=LOG, runner=dict(executor="docker+machine", system_id="s_1818892f902b", uuid=UUID),
              usage=dict(duration_ms="720412", failure_reason="", finished_at="2026-11-05T12:12:30.412Z",
                         started_at="2026-11-05T12:00:30.000Z", status="success"))
token_sha256 = b64(sha(TOKEN.encode()))
claim = dict(issued_at=T, log=LOG, public_key=key_of(RUNNER), token_sha256=token_sha256)
attestation = dict(clock_offset_ms="-12", counter="1", files=[dict(name="usage-log-2026-11-05-00-00-00.000.json", offset="948")],
                   issued_at="2026-11-05T13:00:00.000Z", log=LOG, malformed="0", rejected="0", spool="0")
heartbeat = dict(issued_at="2026-11-05T12:05:30.000Z", log=LOG, runner=dict(system_id="s_1818892f902b", uuid=UUID),
                 jobs=[dict(elapsed_ms="300000", id="9007199254740993", project_id="50010", root_namespace_id="1001", timeout_ms="3600000"),
                       dict(elapsed_ms="0", id="9007199254740995", project_id="50010", root_namespace_id="1001")])
rotation = dict(final_counter="1", issued_at="2026-11-05T14:00:00.000Z", log=LOG, public_key=key_of(NEXT))
report_jws = jws(RUNNER, "usage-report-v1+jws", report)
fact = sha(canonical(dict(job=report["job"], log=LOG, runner=dict(uuid=UUID), usage=report["usage"])).encode())


def charge(ms, factor):
    """Half even to six decimals: Python's round on a fraction is exact and half even."""
    n = round(Fraction(ms) * Fraction(factor) * 10**6)
    return f"{n // 10**6}.{n % 10**6:06d}"


bodies = [
    ("log", "2026-11-01T00:00:00.000Z", dict(billing_from="2026-01-01T00:00:00.000Z", control="single", duration_cap_ms="2678400000",
        platform="dotcom", salt=salt(0), skew_ms="300000", unique_id="1298b121-eb2c-5d98-af71-ebcba276c7e9")),
    ("rate_card", "2026-11-01T00:00:01.000Z", dict(approval="", by="p_finance", effective_from="2026-01-01T00:00:00.000Z",
        not_billable=["runner_system_failure"], project_factors=dict(open_source="0.5", gitlab_contribution="monthly_minutes/300000"),
        runner_factors={"linux-medium": "2", "*": "1"}, salt=salt(1), source="example", tracking="hosted")),
    ("enrolment", "2026-11-01T00:00:02.000Z", dict(by="p_provisioner", claim_until="2026-11-08T00:00:02.000Z", namespaces=[],
        runners=[dict(effective_from="2026-11-01T00:00:00.000Z", machine_type="linux-medium", runner_id="700", runner_type="instance",
                      tracking="hosted", uuid=UUID)], salt=salt(2), token_sha256=token_sha256)),
    ("key", "2026-11-05T12:00:01.000Z", dict(enrolment="2", jws=jws(RUNNER, "claim-v1+jws", claim), kid=kid_of(public(RUNNER)))),
    ("usage", "2026-11-05T12:13:01.000Z", dict(billable=True, billing_month="2026-11-01", card="1", **{"class": "standard"},
        compute_ms=charge(720412, 2), enrolment="2", factor="2/1", jws=report_jws, limit="", machine_type="linux-medium", not_billable="",
        tracking="hosted", usage_month="2026-11-01")),
    ("attestation", "2026-11-05T13:00:00.500Z", dict(jws=jws(RUNNER, "attestation-v1+jws", attestation))),
    ("key_rotated", "2026-11-05T14:00:00.500Z", dict(jws=jws(RUNNER, "rotation-v1+jws", rotation))),
]
entries, prev = [], bytes(32)
for index, (kind, at, body) in enumerate(bodies):
    text = canonical(dict(at=at, body=body, index=str(index), kind=kind, log=LOG, prev=b64(prev), v="1"))
    prev = sha(b"\x00" + text.encode())
    entries.append(dict(bytes=text, leaf=b64(prev)))


def mth(hashes):
    if len(hashes) == 1:
        return hashes[0]
    k = 1
    while k * 2 < len(hashes):
        k *= 2
    return sha(b"\x01" + mth(hashes[:k]) + mth(hashes[k:]))


ORIGIN = f"minutebook.example/{LOG}"
root = mth([base64.b64decode(e["leaf"]) for e in entries])
text = f"{ORIGIN}\n{len(entries)}\n{b64(root)}\n"
key_id = sha(ORIGIN.encode() + b"\n\x01" + public(LOGKEY))[:4]
note = text + f"\n\u2014 {ORIGIN} {b64(key_id + sign(LOGKEY, text.encode()))}\n"
vkey = f"{ORIGIN}+{key_id.hex()}+{b64(bytes([1]) + public(LOGKEY))}"
RECEIPTKEY = sha(b"receipt key")
leaf = entries[4]["leaf"]
results = [dict(code="accepted", counter="1", digest=b64(sha(report_jws.encode())), index="4", leaf=leaf),
           dict(code="duplicate", counter="2", digest=b64(sha(b"the same job again")), index="4", leaf=leaf),
           dict(code="malformed", digest=b64(sha(b"no jws")))]
receipt = dict(count="3", issued_at="2026-11-05T12:13:01.250Z", log=LOG, origin=ORIGIN,
               root=b64(mth([sha(b"\x00" + canonical(result).encode()) for result in results])))
RECEIPTNAME = f"{ORIGIN}/receipt"
receipt_id = sha(RECEIPTNAME.encode() + b"\n\x01" + public(RECEIPTKEY))[:4]
receipt_vkey = f"{RECEIPTNAME}+{receipt_id.hex()}+{b64(bytes([1]) + public(RECEIPTKEY))}"
charges = [dict(duration_ms=str(ms), factor=f, compute_ms=charge(ms, f)) for ms, f in
           [(0, "1"), (1, "1/128"), (3, "1/128"), (5, "1/128"), (7, "1/128"), (125000, "1/125"), (300000, "10000/300000"), (18000000000, "1/30"),
            (2678400000, "12"), (720412, "2"), (1, "1/3"), (999999999999, "400/300000")]]
if __name__ == "__main__":
    print(json.dumps(dict(
        source="test/vectors/make_protocol.py, an independent oracle in Python",
        key=dict(seed=RUNNER.hex(), public_key=key_of(RUNNER), kid=kid_of(public(RUNNER))),
        report=dict(payload=report, canonical=canonical(report), jws=report_jws, digest=b64(sha(report_jws.encode())), fact=b64(fact)),
        token=dict(token=TOKEN, token_sha256=token_sha256),
        claim=jws(RUNNER, "claim-v1+jws", claim), attestation=jws(RUNNER, "attestation-v1+jws", attestation),
        heartbeat=dict(payload=heartbeat, canonical=canonical(heartbeat), jws=jws(RUNNER, "heartbeat-v1+jws", heartbeat)),
        rotation=jws(RUNNER, "rotation-v1+jws", rotation), successor=dict(seed=NEXT.hex(), public_key=key_of(NEXT)),
        entries=entries, root=b64(root), vkey=vkey, checkpoint=note, charges=charges,
        receipt=dict(results=results, payload=receipt, jws=jws(RECEIPTKEY, "receipt-v1+jws", receipt), vkey=receipt_vkey)), ensure_ascii=False, indent=1))
