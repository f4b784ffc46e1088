import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { createPrivateKey, randomUUID, sign } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, createServer as portServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { patience, patient } from "../../../../../../testing/patience.ts";

/** A registry of the distribution's own program on this machine. */
export interface TestRegistry {
  /** `127.0.0.1:PORT`. */
  readonly host: string;
  /** How often a token was asked for, and by whom; empty: by nobody in particular. */
  readonly tokens: readonly string[];
  push(layout: string, name: string): Promise<void>;
  stop(): Promise<void>;
}

export const LOGIN = { user: "ada", password: "secret-1" } as const;

/** `bearer`: it answers only to tokens, which its token server gives to everybody for `open/`, and to one login for the rest. */
export async function startRegistry(folder: string, bearer: boolean): Promise<TestRegistry> {
  const tokens: string[] = [];
  const issuer = bearer ? await tokenServer(folder, tokens) : undefined;
  const port = await freePort();
  const host = `127.0.0.1:${port}`;
  const config = {
    version: "0.1",
    log: { level: "error" },
    storage: { filesystem: { rootdirectory: join(folder, "registry") } },
    http: { addr: host },
    ...(issuer === undefined
      ? {}
      : {
          auth: {
            token: {
              realm: `http://127.0.0.1:${(issuer.address() as AddressInfo).port}/token`,
              service: "test",
              issuer: "test",
              rootcertbundle: join(folder, "token.pem"),
            },
          },
        }),
  };
  const file = join(folder, "registry.yml");
  writeFileSync(file, JSON.stringify(config));
  const child = spawn("docker-registry", ["serve", file], { stdio: "ignore" });
  await answers(`http://${host}/v2/`, child);
  return {
    host,
    tokens,
    push: async (layout, name) => {
      const to = [`--dest-creds=${LOGIN.user}:${LOGIN.password}`, "--dest-tls-verify=false"];
      const words = [
        "--insecure-policy",
        "copy",
        "--quiet",
        ...to,
        `oci:${layout}`,
        `docker://${host}/${name}`,
      ];
      // Not synchronous: it asks this process for tokens.
      await promisify(execFile)("skopeo", words, { timeout: patient(60_000) });
    },
    stop: async () => {
      child.kill("SIGKILL");
      issuer?.closeAllConnections();
      await new Promise((resolve) => (issuer === undefined ? resolve(undefined) : issuer.close(resolve)));
    },
  };
}

/** Tokens as the registry's specification has them (distribution, auth/jwt.md): signed, for what was asked. */
async function tokenServer(folder: string, tokens: string[]) {
  const [keyFile, certificate] = [join(folder, "token.key"), join(folder, "token.pem")];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  execFileSync(
    "openssl",
    ["req", "-x509", ...curve, "-subj", "/CN=test", "-keyout", keyFile, "-out", certificate],
    { stdio: "ignore" },
  );
  const key = createPrivateKey(readFileSync(keyFile));
  const x5c = [readFileSync(certificate, "utf8").replace(/-----[^-]+-----|\n/g, "")];
  const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const server = createServer((request, response) => {
    const scope = new URL(request.url!, "http://x").searchParams.get("scope") ?? "";
    const [, name = "", actions = ""] = scope.split(":");
    const basic = Buffer.from(request.headers.authorization?.slice(6) ?? "", "base64").toString();
    const isAda = basic === `${LOGIN.user}:${LOGIN.password}`;
    tokens.push(basic.split(":")[0]!);
    const allowed = isAda ? actions.split(",") : name.startsWith("open/") ? ["pull"] : [];
    const now = Math.floor(Date.now() / 1000);
    const claims = {
      ...{ iss: "test", sub: basic.split(":")[0], aud: "test", jti: randomUUID() },
      ...{ iat: now, nbf: now - 60, exp: now + 600 },
      access: name === "" ? [] : [{ type: "repository", name, actions: allowed }],
    };
    const text = `${base64({ typ: "JWT", alg: "ES256", x5c })}.${base64(claims)}`;
    const signature = sign("sha256", Buffer.from(text), { key, dsaEncoding: "ieee-p1363" });
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ token: `${text}.${signature.toString("base64url")}` }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

async function freePort(): Promise<number> {
  const server = portServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function answers(url: string, child: ChildProcess): Promise<void> {
  for (let look = 0; look < 1500 * patience(); look++) {
    if (child.exitCode !== null) throw new Error(`docker-registry ended with ${child.exitCode}`);
    if (
      await fetch(url).then(
        () => true,
        () => false,
      )
    )
      return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
