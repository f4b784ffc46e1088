import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from "jose";

interface Key {
  readonly kid: string;
  readonly sign: Awaited<ReturnType<typeof generateKeyPair>>["privateKey"];
  readonly jwk: JWK;
}

export async function newKey(kid: string, algorithm = "ES256"): Promise<Key> {
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true });
  return { kid, sign: privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg: algorithm, use: "sig" } };
}

/** An issuer of tokens that answers by HTTP, as OpenID Connect Discovery has it. */
export class TestIssuer implements AsyncDisposable {
  readonly #server: Server;
  readonly url: string;
  /** Of which it publishes the public part. */
  keys: readonly Key[] = [];
  /** Paths that it was asked for. */
  readonly asked: string[] = [];
  /** What it answers instead, by path. */
  readonly instead = new Map<string, { readonly status: number; readonly text: string }>();

  static async start(): Promise<TestIssuer> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const issuer = new TestIssuer(server);
    issuer.keys = [await newKey("first")];
    return issuer;
  }

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/realm`;
    server.on("request", ({ url = "" }, reply) => {
      this.asked.push(url);
      const { status, text } = this.instead.get(url) ?? {
        status: 200,
        text: JSON.stringify(this.#answer(url)),
      };
      reply.writeHead(status, { "content-type": "application/json" }).end(text);
    });
  }

  #answer(path: string): object {
    if (path === "/realm/keys") return { keys: this.keys.map(({ jwk }) => jwk) };
    return { issuer: this.url, jwks_uri: `${this.url}/keys`, authorization_endpoint: `${this.url}/auth` };
  }

  /** A token of `claims`, signed with the newest key; `at`: wall time, milliseconds. */
  token(claims: JWTPayload, at: number, key = this.keys.at(-1)!): Promise<string> {
    const now = Math.floor(at / 1_000);
    const usual = { iss: this.url, aud: "nodeyard", sub: "alice", iat: now, exp: now + 300 };
    return new SignJWT({ ...usual, ...claims })
      .setProtectedHeader({ alg: key.jwk.alg!, kid: key.kid })
      .sign(key.sign);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
