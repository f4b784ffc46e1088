import {
  createDiffieHellmanGroup,
  createECDH,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  randomBytes,
} from "node:crypto";
import type { ExchangeMethod } from "../contract.ts";
import type { Secrets } from "../ssh/handshake.ts";

/**
 * The cheapest method first: an X25519 exchange costs a tenth of one with a classic group. The SHA-1 methods are for old network switches.
 */
const METHODS: readonly ExchangeMethod[] = [
  x25519("curve25519-sha256"),
  x25519("curve25519-sha256@libssh.org"),
  curve("ecdh-sha2-nistp256", "prime256v1", "sha256"),
  curve("ecdh-sha2-nistp384", "secp384r1", "sha384"),
  curve("ecdh-sha2-nistp521", "secp521r1", "sha512"),
  group("diffie-hellman-group14-sha256", "modp14", "sha256"),
  group("diffie-hellman-group16-sha512", "modp16", "sha512"),
  group("diffie-hellman-group18-sha512", "modp18", "sha512"),
  group("diffie-hellman-group14-sha1", "modp14", "sha1"),
  group("diffie-hellman-group1-sha1", "modp2", "sha1"),
];

/** The methods and random cookies of this host. */
export const secrets: Secrets = { methods: METHODS, cookie: () => randomBytes(16) };

/** RFC 8731. Its two names mean the same. */
function x25519(name: string): ExchangeMethod {
  return {
    name,
    hash: "sha256",
    encoding: "string",
    start() {
      const { publicKey, privateKey } = generateKeyPairSync("x25519");
      return {
        publicValue: Buffer.from(publicKey.export({ format: "jwk" }).x!, "base64url"),
        agree(peer) {
          const x = Buffer.from(peer).toString("base64url");
          const peerKey = createPublicKey({ format: "jwk", key: { kty: "OKP", crv: "X25519", x } });
          return diffieHellman({ privateKey, publicKey: peerKey });
        },
      };
    },
  };
}

/** RFC 5656, with uncompressed points. */
function curve(name: string, curveName: string, hash: ExchangeMethod["hash"]): ExchangeMethod {
  return {
    name,
    hash,
    encoding: "string",
    start() {
      const ecdh = createECDH(curveName);
      return { publicValue: ecdh.generateKeys(), agree: (peer) => ecdh.computeSecret(peer) };
    },
  };
}

/** RFC 4253 and 8268: the groups of Oakley, by their names in Node. */
function group(name: string, groupName: string, hash: ExchangeMethod["hash"]): ExchangeMethod {
  return {
    name,
    hash,
    encoding: "mpint",
    start() {
      const dh = createDiffieHellmanGroup(groupName);
      return { publicValue: dh.generateKeys(), agree: (peer) => dh.computeSecret(peer) };
    },
  };
}
