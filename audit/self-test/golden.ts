/**
 * Logs as a service wrote them, by fixed keys (of checkpoints and agents: seeds of 32 equal bytes, 1 the
 * log's, 2 the agent's): entries, their hashes, and the checkpoint over them.
 */

export interface Golden {
  log: string;
  vkey: string;
  checkpoint: string;
  /** Of level 0, in base64. */
  tile: string;
  entries: readonly string[];
}

/** The smallest log that has a job on it. */
export const GOLDEN: Golden = {
  log: "5e1f7e575e1f7e575e1f7e575e1f7e57",
  vkey: "self-test/5e1f7e575e1f7e575e1f7e575e1f7e57+9540d072+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c",
  checkpoint:
    "self-test/5e1f7e575e1f7e575e1f7e575e1f7e57\n5\nrtWriGgv7VijN2U9dOv5HvOyrPfYIC1Lt1D3bblzqzg=\n\n— self-test/5e1f7e575e1f7e575e1f7e575e1f7e57 lUDQcuxATnbB+PaRbdkba7XSSRYjxp/55g1PpIgq3M/sZlhdhsgC8j/rT+HmSLZr7ppyN+6N51xCtYR9DLDQa38pAws=\n",
  tile: "oIEE7+ANEz1q1gZ0w9EVQzBfsdzIm7LT9t7829tZT42M905FcZ2PudLrLoBDH/5ZkWo15UIa0exAoMVk8cAkniFiq/cl2R1bwXIM4ta23B0ziLGVJ6qYVAjXbR59nJupF7ic8hgapW4PraJ1VGs8cEVcWuiqvRQgg9w1DKBHRYpK8KEsyL/LxAhOJEw56h8Nb91FWFlH6m5Wcd8lJWHlQw==",
  entries: [
    '{"at":"2026-11-20T12:00:00.000Z","body":{"billing_from":"2026-01-01T00:00:00.000Z","control":"single","duration_cap_ms":"2678400000","platform":"dotcom","salt":"AAAAAAAAAAAAAAAAAAAAAA==","skew_ms":"300000","unique_id":"instance"},"index":"0","kind":"log","log":"5e1f7e575e1f7e575e1f7e575e1f7e57","prev":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","v":"1"}',
    '{"at":"2026-11-20T12:00:00.000Z","body":{"approval":"","by":"finance","effective_from":"2026-01-01T00:00:00.000Z","not_billable":["runner_system_failure"],"project_factors":{"contribution":"monthly_minutes/300000","fork":"1/125","oss":"0.5"},"runner_factors":{"*":"2","large":"3","small":"1"},"salt":"AAAAAAAAAAAAAAAAAAAAAA==","source":"test","tracking":"hosted"},"index":"1","kind":"rate_card","log":"5e1f7e575e1f7e575e1f7e575e1f7e57","prev":"oIEE7+ANEz1q1gZ0w9EVQzBfsdzIm7LT9t7829tZT40=","v":"1"}',
    '{"at":"2026-11-20T12:00:00.000Z","body":{"by":"operator","claim_until":"2026-12-31T00:00:00.000Z","namespaces":[],"runners":[{"effective_from":"2026-01-01T00:00:00.000Z","machine_type":"small","runner_id":"7","runner_type":"instance","tracking":"hosted","uuid":"runner-a"}],"salt":"AAAAAAAAAAAAAAAAAAAAAA==","token_sha256":"28G0yQD/5I1XW12lxjgEASX2XbD+PiRJS3bqmGRX2YY="},"index":"2","kind":"enrolment","log":"5e1f7e575e1f7e575e1f7e575e1f7e57","prev":"jPdORXGdj7nS6y6AQx/+WZFqNeVCGtHsQKDFZPHAJJ4=","v":"1"}',
    '{"at":"2026-11-20T12:00:00.000Z","body":{"enrolment":"2","jws":"eyJhbGciOiJFZDI1NTE5Iiwia2lkIjoiYVZCdGFwTGQxMVNVVktJTUdKZlB6T0VEdU4wc1hjbXpKUU5WVC1fc0tFVSIsInR5cCI6ImNsYWltLXYxK2p3cyJ9.eyJpc3N1ZWRfYXQiOiIyMDI2LTExLTIwVDEyOjAwOjAwLjAwMFoiLCJsb2ciOiI1ZTFmN2U1NzVlMWY3ZTU3NWUxZjdlNTc1ZTFmN2U1NyIsInB1YmxpY19rZXkiOnsiY3J2IjoiRWQyNTUxOSIsImt0eSI6Ik9LUCIsIngiOiJnVGwzRHFoOUYxOVdvMVJtdzB4LXpNdU5pcEcwN2plaVhmWVBXNF9KczVRIn0sInRva2VuX3NoYTI1NiI6IjI4RzB5UUQvNUkxWFcxMmx4amdFQVNYMlhiRCtQaVJKUzNicW1HUlgyWVk9In0.1CvdRcmPavlCdJefmOtYkh_zcVplk7OkYWXYstD1_-WLm_h9l_rHbQUjvb-6no4f__b7wkThNYkMHvy1xiGFAQ","kid":"aVBtapLd11SUVKIMGJfPzOEDuN0sXcmzJQNVT-_sKEU"},"index":"3","kind":"key","log":"5e1f7e575e1f7e575e1f7e575e1f7e57","prev":"IWKr9yXZHVvBcgzi1rbcHTOIsZUnqphUCNdtHn2cm6k=","v":"1"}',
    '{"at":"2026-11-20T12:00:00.000Z","body":{"billable":true,"billing_month":"2026-11-01","card":"1","class":"standard","compute_ms":"60000.000000","enrolment":"2","factor":"1/1","jws":"eyJhbGciOiJFZDI1NTE5Iiwia2lkIjoiYVZCdGFwTGQxMVNVVktJTUdKZlB6T0VEdU4wc1hjbXpKUU5WVC1fc0tFVSIsInR5cCI6InVzYWdlLXJlcG9ydC12MStqd3MifQ.eyJjb3VudGVyIjoiMSIsImlkIjoiciIsImlzc3VlZF9hdCI6IjIwMjYtMTEtMjBUMTI6MDA6MDAuMDAwWiIsImpvYiI6eyJpZCI6IjEiLCJwaXBlbGluZV9pZCI6IjEiLCJwcm9qZWN0X2lkIjoiMTAiLCJyb290X25hbWVzcGFjZV9pZCI6IjEifSwibG9nIjoiNWUxZjdlNTc1ZTFmN2U1NzVlMWY3ZTU3NWUxZjdlNTciLCJydW5uZXIiOnsiZXhlY3V0b3IiOiJkb2NrZXIiLCJzeXN0ZW1faWQiOiJzIiwidXVpZCI6InJ1bm5lci1hIn0sInVzYWdlIjp7ImR1cmF0aW9uX21zIjoiNjAwMDAiLCJmYWlsdXJlX3JlYXNvbiI6IiIsImZpbmlzaGVkX2F0IjoiMjAyNi0xMS0yMFQxMjowMDowMC4wMDBaIiwic3RhcnRlZF9hdCI6IjIwMjYtMTEtMjBUMTI6MDA6MDAuMDAwWiIsInN0YXR1cyI6InN1Y2Nlc3MifX0.5w52rmWVaoDsSYDpiP9Vs2RNpcZY17B11aX7lT9qhX4StHXNhl5mUAaJqts7rLWIJ9VQyB0J7bLt683RDIRuAw","limit":"","machine_type":"small","not_billable":"","tracking":"hosted","usage_month":"2026-11-01"},"index":"4","kind":"usage","log":"5e1f7e575e1f7e575e1f7e575e1f7e57","prev":"F7ic8hgapW4PraJ1VGs8cEVcWuiqvRQgg9w1DKBHRYo=","v":"1"}',
  ],
};

/** A card that a second person approved, by a token of an issuer whose ES256 key nobody has kept. */
export const GOLDEN_APPROVAL: Golden = {
  log: "00112233445566778899aabbccddeeff",
  vkey: "self-test/00112233445566778899aabbccddeeff+6f72b924+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c",
  checkpoint:
    "self-test/00112233445566778899aabbccddeeff\n6\n7CPJVR1AY/It2QfJ5xr+US26CB2sdFFRHZBf2g/YgLw=\n\n— self-test/00112233445566778899aabbccddeeff b3K5JHfoy0xqz/LsOFaekT5lex29xrZxJkr1Nwu1GD1GdZX0in9uczlU3J+OW28z8BtPX+PuDl4c/kSKs1mmQNBRnw8=\n",
  tile: "SEb/HuXpJjwvxn3JwqqQnPoqwN+w3bLWtA/9sapJ1coRKwE61QYqN9yaXX21JxazfG9exg/GfcE+QgDCwxCAdo5XCQuMrqddDKrK4w6A760DldaDf1mtODRQVsHYzs+fwbnNoRnhUPHH2Qjrf/RkYuyeB64BrGWhXvMcyvzYumBEHcrvrTttM5P983fNdX6jr8637t4Ja5+QqO56k+zN7gLr7BU9B94aCMpdXLIO2W7nycwzSDI4/iTvIjxY2FLk",
  entries: [
    '{"at":"2026-11-20T12:00:00.000Z","body":{"billing_from":"2026-01-01T00:00:00.000Z","control":"dual","duration_cap_ms":"2678400000","platform":"dotcom","salt":"AAAAAAAAAAAAAAAAAAAAAA==","skew_ms":"300000","unique_id":"instance"},"index":"0","kind":"log","log":"00112233445566778899aabbccddeeff","prev":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","v":"1"}',
    '{"at":"2026-11-20T12:00:00.000Z","body":{"approval":"","by":"operator","grants":[{"claim":"sub","issuer":"https://sign-in.example","namespaces":"*","role":"approver","value":"second"},{"claim":"sub","issuer":"https://sign-in.example","namespaces":"*","role":"approver","value":"first"},{"claim":"sub","issuer":"https://sign-in.example","namespaces":"*","role":"finance","value":"first"}],"salt":"AAAAAAAAAAAAAAAAAAAAAA=="},"index":"1","kind":"role_mapping","log":"00112233445566778899aabbccddeeff","prev":"SEb/HuXpJjwvxn3JwqqQnPoqwN+w3bLWtA/9sapJ1co=","v":"1"}',
    '{"at":"2026-11-20T12:00:00.000Z","body":{"by":"p_second","issuer":"https://sign-in.example","jwk":{"crv":"P-256","kty":"EC","x":"ZFnQOYG_jOyLjOR7NA9WdHwdYXIMnOVnJIKpImVbOKo","y":"wazRXWXjfEiqiZppjOgmtll6S60MC_h-gIbceIQU-aA"},"kid":"key-1","salt":"AAAAAAAAAAAAAAAAAAAAAA=="},"index":"2","kind":"issuer_key","log":"00112233445566778899aabbccddeeff","prev":"ESsBOtUGKjfcml19tScWs3xvXsYPxn3BPkIAwsMQgHY=","v":"1"}',
    '{"at":"2026-11-20T12:00:00.000Z","body":{"action":"rate_card","by":"p_first","content":"{\\"effective_from\\":\\"2026-01-01T00:00:00.000Z\\",\\"not_billable\\":[\\"runner_system_failure\\"],\\"project_factors\\":{\\"contribution\\":\\"monthly_minutes/300000\\",\\"fork\\":\\"1/125\\",\\"oss\\":\\"0.5\\"},\\"runner_factors\\":{\\"*\\":\\"2\\",\\"large\\":\\"3\\",\\"small\\":\\"1\\"},\\"source\\":\\"test\\",\\"tracking\\":\\"hosted\\"}","effect":"{}","expires_at":"2026-11-21T12:00:00.000Z","proposer":{"issuer":"https://sign-in.example","subject":"first"},"reason":"incident","salt":"AAAAAAAAAAAAAAAAAAAAAA==","ticket":"CASE-1"},"index":"3","kind":"proposal","log":"00112233445566778899aabbccddeeff","prev":"jlcJC4yup10MqsrjDoDvrQOV1oN/Wa04NFBWwdjOz58=","v":"1"}',
    '{"at":"2026-11-20T12:00:00.000Z","body":{"by":"p_second","issuer_key":"2","proposal":"3","salt":"AAAAAAAAAAAAAAAAAAAAAA==","token":"eyJhbGciOiJFUzI1NiIsImtpZCI6ImtleS0xIiwidHlwIjoiSldUIn0.eyJpc3MiOiJodHRwczovL3NpZ24taW4uZXhhbXBsZSIsInN1YiI6InNlY29uZCIsImF1ZCI6Im1pbnV0ZWJvb2siLCJhenAiOiJtaW51dGVib29rIiwiaWF0IjoxNzk1MTc2MDAwLCJleHAiOjE3OTUxNzYzMDAsImF1dGhfdGltZSI6MTc5NTE3NTk5NSwibm9uY2UiOiJ3Ym5Ob1JuaFVQSEgyUWpyZl9Sa1l1eWVCNjRCckdXaFh2TWN5dnpZdW1BIn0.B0im4z7i4Szp9pt0fo_-D7rQIYEJzjKruXUzOR8WH_z5f0usIcXSpdJdR_2lI8DbjYosUymrJokjNqQJNZ6faw"},"index":"4","kind":"approval","log":"00112233445566778899aabbccddeeff","prev":"wbnNoRnhUPHH2Qjrf/RkYuyeB64BrGWhXvMcyvzYumA=","v":"1"}',
    '{"at":"2026-11-20T12:00:00.000Z","body":{"approval":"4","by":"p_first","effective_from":"2026-01-01T00:00:00.000Z","not_billable":["runner_system_failure"],"project_factors":{"contribution":"monthly_minutes/300000","fork":"1/125","oss":"0.5"},"runner_factors":{"*":"2","large":"3","small":"1"},"salt":"AAAAAAAAAAAAAAAAAAAAAA==","source":"test","tracking":"hosted"},"index":"5","kind":"rate_card","log":"00112233445566778899aabbccddeeff","prev":"RB3K7607bTOT/fN3zXV+o6/Ot+7eCWufkKjuepPsze4=","v":"1"}',
  ],
};
