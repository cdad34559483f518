/** Private keys of the service, as flows see them: they sign, and never show themselves. */
export interface SigningKey {
  /** 32 bytes: Ed25519, canonical, of the prime-order subgroup. */
  readonly publicKey: Uint8Array;
  /**
   * 64 bytes that verify under `publicKey`: whoever holds the key elsewhere is not believed.
   *
   * @throws Problem `signer-unavailable`
   */
  sign(message: Uint8Array): Promise<Uint8Array>;
}
