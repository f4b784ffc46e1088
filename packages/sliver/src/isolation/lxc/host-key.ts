const TYPE = "ssh-ed25519";
/** An encrypted key is padded to blocks of its cipher; without one they have so many bytes. */
const BLOCK = 8;
const LINE = 70;

/**
 * The private key file that sshd reads, in OpenSSH's own format (PROTOCOL.key), which all its versions know; they read
 * Ed25519 in PKCS#8 only since 9.6. `seed` and `publicKey` are the 32 bytes each of RFC 8032.
 */
export function openSshPrivateKey(seed: Uint8Array, publicKey: Uint8Array, comment: string): string {
  const known = publicBlob(publicKey);
  // The two equal numbers tell a decrypted key from noise; here nothing is encrypted.
  const check = Buffer.from(publicKey.subarray(0, 4));
  const secret = Buffer.concat([
    check,
    check,
    known,
    text(Buffer.concat([seed, publicKey])),
    text(Buffer.from(comment, "latin1")),
  ]);
  const padding = Buffer.from(Array.from({ length: -secret.length & (BLOCK - 1) }, (_, at) => at + 1));
  const whole = Buffer.concat([
    Buffer.from("openssh-key-v1\0", "latin1"),
    ...["none", "none", ""].map((one) => text(Buffer.from(one, "latin1"))),
    Buffer.from([0, 0, 0, 1]),
    text(known),
    text(Buffer.concat([secret, padding])),
  ]);
  const lines = whole.toString("base64").match(new RegExp(`.{1,${LINE}}`, "g"))!;
  return ["-----BEGIN OPENSSH PRIVATE KEY-----", ...lines, "-----END OPENSSH PRIVATE KEY-----", ""].join(
    "\n",
  );
}

function publicBlob(publicKey: Uint8Array): Buffer {
  return Buffer.concat([text(Buffer.from(TYPE, "latin1")), text(publicKey)]);
}

/** A string of RFC 4251: its length, then its bytes. */
function text(bytes: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
