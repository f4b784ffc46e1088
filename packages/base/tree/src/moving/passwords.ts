/** Of SessionTracker and ZooKeeperServer: what the secret of a session follows from, beside its id. */
const SECRET = 0xb3415c00n;
const MASK = (1n << 48n) - 1n;

/**
 * The 16 bytes that a ZooKeeper wants of a client that continues a session: it keeps none, but draws them from java.util.Random, which it starts
 * with the id (ZooKeeperServer.generatePasswd). So they are no secret from anybody who knows the id.
 */
export function zooKeeperPassword(id: bigint): Uint8Array {
  let seed = (BigInt.asUintN(64, id ^ SECRET) ^ 0x5deece66dn) & MASK;
  const password = Buffer.alloc(16);
  for (let at = 0; at < password.length; at += 4) {
    seed = (seed * 0x5deece66dn + 0xbn) & MASK;
    // The lowest byte of the number comes first.
    password.writeUInt32LE(Number(seed >> 16n), at);
  }
  return password;
}
