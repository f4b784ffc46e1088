/** A kind of host key: one handshake shows one key, whatever the number of signature algorithms it serves. */
export interface KeyType {
  /** The name in the key itself and in `known_hosts`. */
  readonly name: string;
  /** Signature algorithms for such a key, best first. */
  readonly algorithms: readonly string[];
}

/** In the order in which keys are reported. Certificates and hardware keys show the same key again, or none. */
export const KEY_TYPES: readonly KeyType[] = [
  { name: "ssh-ed25519", algorithms: ["ssh-ed25519"] },
  { name: "ecdsa-sha2-nistp256", algorithms: ["ecdsa-sha2-nistp256"] },
  { name: "ecdsa-sha2-nistp384", algorithms: ["ecdsa-sha2-nistp384"] },
  { name: "ecdsa-sha2-nistp521", algorithms: ["ecdsa-sha2-nistp521"] },
  { name: "ssh-rsa", algorithms: ["rsa-sha2-512", "rsa-sha2-256", "ssh-rsa"] },
];

/** The key types of which a server with these host key algorithms has a key. */
export function keyTypesOf(algorithms: readonly string[]): readonly KeyType[] {
  return KEY_TYPES.filter((type) => type.algorithms.some((name) => algorithms.includes(name)));
}
