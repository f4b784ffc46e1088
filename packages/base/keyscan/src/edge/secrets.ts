import crypto, {
  createDiffieHellmanGroup,
  createECDH,
  createHash,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  randomBytes,
} from "node:crypto";
import type { DhGroup, ExchangeMethod } from "../contract.ts";
import type { Secrets } from "../ssh/handshake.ts";

const FIXED = { encoding: "string", secretEncoding: "mpint", asksForGroup: false } as const;
/** Bytes of a public key and of an encapsulated secret of ML-KEM-768 (FIPS 203, table 3). */
const MLKEM = { publicKey: 1184, ciphertext: 1088 };

/**
 * The cheapest method first: an X25519 exchange costs a tenth of one with a classic group. The SHA-1 methods are for old network
 * switches. OpenSSH's sntrup761 is left out: Node has it not, and no server has it alone (docs/reference/host-keys.md).
 */
const METHODS: readonly ExchangeMethod[] = [
  x25519("curve25519-sha256"),
  x25519("curve25519-sha256@libssh.org"),
  curve("ecdh-sha2-nistp256", "prime256v1", "sha256"),
  curve("ecdh-sha2-nistp384", "secp384r1", "sha384"),
  curve("ecdh-sha2-nistp521", "secp521r1", "sha512"),
  // From Node 24.7 on.
  ...(typeof crypto.decapsulate === "function" ? [mlkem("mlkem768x25519-sha256")] : []),
  group("diffie-hellman-group14-sha256", "sha256", "modp14"),
  group("diffie-hellman-group16-sha512", "sha512", "modp16"),
  group("diffie-hellman-group18-sha512", "sha512", "modp18"),
  group("diffie-hellman-group-exchange-sha256", "sha256"),
  group("diffie-hellman-group14-sha1", "sha1", "modp14"),
  group("diffie-hellman-group-exchange-sha1", "sha1"),
  group("diffie-hellman-group1-sha1", "sha1", "modp2"),
];

/** The methods and random cookies of this host. */
export const secrets: Secrets = { methods: METHODS, cookie: () => randomBytes(16) };

/** RFC 8731. Its two names mean the same. */
function x25519(name: string): ExchangeMethod {
  return { ...FIXED, name, hash: "sha256", start: startX25519 };
}

function startX25519() {
  const { publicKey, privateKey } = generateKeyPairSync("x25519");
  return {
    publicValue: Buffer.from(publicKey.export({ format: "jwk" }).x!, "base64url"),
    agree(peer: Uint8Array) {
      const x = Buffer.from(peer).toString("base64url");
      const peerKey = createPublicKey({ format: "jwk", key: { kty: "OKP", crv: "X25519", x } });
      return diffieHellman({ privateKey, publicKey: peerKey });
    },
  };
}

/** draft-ietf-sshm-mlkem-hybrid-kex: ML-KEM-768 and X25519 side by side; the secret is the hash of both secrets. */
function mlkem(name: string): ExchangeMethod {
  return {
    ...FIXED,
    name,
    hash: "sha256",
    secretEncoding: "string",
    start() {
      const { publicKey, privateKey } = generateKeyPairSync("ml-kem-768");
      // A public key of ML-KEM is the end of its SubjectPublicKeyInfo, whatever form comes before it.
      const encapsulation = publicKey.export({ format: "der", type: "spki" }).subarray(-MLKEM.publicKey);
      const classic = startX25519();
      return {
        publicValue: Buffer.concat([encapsulation, classic.publicValue]),
        agree(peer) {
          const shared = crypto.decapsulate(privateKey, peer.subarray(0, MLKEM.ciphertext));
          return createHash("sha256")
            .update(shared)
            .update(classic.agree(peer.subarray(MLKEM.ciphertext)))
            .digest();
        },
      };
    },
  };
}

/** RFC 5656, with uncompressed points. */
function curve(name: string, curveName: string, hash: ExchangeMethod["hash"]): ExchangeMethod {
  return {
    ...FIXED,
    name,
    hash,
    start() {
      const ecdh = createECDH(curveName);
      return { publicValue: ecdh.generateKeys(), agree: (peer) => ecdh.computeSecret(peer) };
    },
  };
}

/** RFC 4253 and 8268: a group of Oakley, by its name in Node. RFC 4419, without a name: the group that the server chooses. */
function group(name: string, hash: ExchangeMethod["hash"], groupName?: string): ExchangeMethod {
  return {
    ...FIXED,
    name,
    hash,
    encoding: "mpint",
    asksForGroup: groupName === undefined,
    start(chosen) {
      if (groupName === undefined) return startInGroup(chosen!);
      const dh = createDiffieHellmanGroup(groupName);
      return { publicValue: dh.generateKeys(), agree: (peer) => dh.computeSecret(peer) };
    },
  };
}

/**
 * Node's own Diffie-Hellman tests a prime that it does not know for primality: a second for 2048 bits, and more than a minute for
 * 8192. The test is of no use here, as nothing is encrypted with the secret: a server in a weak group betrays only itself.
 */
function startInGroup({ prime, generator }: DhGroup) {
  const p = toBigInt(prime);
  const bits = p.toString(2).length;
  if (bits < 1024 || bits > 8192 || p % 2n === 0n)
    throw new RangeError(`the server chose a group of ${bits} bits, outside of 1024 to 8192, or an even one`);
  const exponent = toBigInt(randomBytes(32));
  const inRange = (value: bigint) => {
    if (value < 2n || value > p - 2n) throw new RangeError("a number of the server is not in its group");
    return value;
  };
  return {
    publicValue: toBytes(power(inRange(toBigInt(generator)), exponent, p)),
    agree: (peer: Uint8Array) => toBytes(power(inRange(toBigInt(peer)), exponent, p)),
  };
}

function power(base: bigint, exponent: bigint, modulus: bigint): bigint {
  let [result, square] = [1n, base];
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % modulus;
    square = (square * square) % modulus;
  }
  return result;
}

function toBigInt(bytes: Uint8Array): bigint {
  return BigInt(`0x0${Buffer.from(bytes).toString("hex")}`);
}

function toBytes(value: bigint): Buffer {
  const hex = value.toString(16);
  return Buffer.from(hex.padStart(hex.length + (hex.length % 2), "0"), "hex");
}
