import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server, type ServerOptions } from "node:https";
import { join } from "node:path";
import { signText } from "@nodeyard/sliver-protocol";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import { spec } from "../api/rig.ts";
import { Certificates } from "./certificates.ts";
import { DaemonRig } from "./rig.ts";

describe("a daemon that fetches its documents over HTTPS", () => {
  const rig = new DaemonRig();
  let files: Certificates;
  let server: Server;
  beforeAll(async () => {
    await rig.prepare();
    files = new Certificates(rig.folder);
    for (const name of ["server", "node-1"]) files.make(name);
  });
  afterEach(async () => {
    await rig.end("SIGTERM");
    // What one test was given the next one would have already.
    rmSync(join(rig.folder, "state"), { recursive: true });
    vi.unstubAllEnvs();
    server.closeAllConnections();
    server.close();
  });
  afterAll(() => rig.stop());

  const serve = async (options: ServerOptions = {}): Promise<string> => {
    const claims = { v: 1, node: "node-1", epoch: 1, version: 1, issuedAt: 0, slivers: [spec("ada")] };
    const body = JSON.stringify({ v: 1, document: signText("document", claims, rig.signer) });
    const tls = { cert: files.text("server.pem"), key: files.text("server.key"), ...options };
    server = createServer(tls, (_, answer) => answer.end(body));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `https://127.0.0.1:${(server.address() as { port: number }).port}/node-1.json`;
  };
  const start = async (documents: object): Promise<void> => {
    rig.errors.length = 0;
    await rig.configure({ documents: { periodSeconds: 1, ...documents } });
    await rig.start();
  };
  const names = async () =>
    (await rig.launcher.status(AbortSignal.timeout(patient(30_000)))).slivers.map(({ name }) => name);
  const says = (text: RegExp) =>
    vi.waitFor(() => expect(rig.errors.join("").split("\n")).toContainEqual(expect.stringMatching(text)), {
      timeout: patient(45_000),
    });
  const PLACE = "^error documents: https://127\\.0\\.0\\.1:\\d+/node-1\\.json: ";

  test("an unknown authority is named with the remedy; one that the system knows is trusted without caFile", async () => {
    const url = await serve();
    vi.stubEnv("SSL_CERT_FILE", undefined);
    await start({ url });
    await says(new RegExp(`${PLACE}.*certificate; name its authority's certificate in caFile$`));
    expect(await names()).toEqual([]);
    await rig.end("SIGTERM");
    vi.stubEnv("SSL_CERT_FILE", files.path("ca.pem"));
    await start({ url });
    await vi.waitFor(async () => expect(await names()).toEqual(["ada"]), { timeout: patient(45_000) });
  });

  test("a place that wants a certificate: a missing one is reported in one line with the remedy, and a given one is sent", async () => {
    const url = await serve({ requestCert: true, rejectUnauthorized: true, ca: files.text("ca.pem") });
    const caFile = files.path("ca.pem");
    await start({ url, caFile });
    await says(new RegExp(`${PLACE}TLS: .*certificate required.*; .*name certFile and keyFile$`));
    expect(rig.errors.join(""), "whole lines").not.toContain("\n\n");
    await rig.end("SIGTERM");
    await start({ url, caFile, certFile: files.path("node-1.pem"), keyFile: files.path("node-1.key") });
    await vi.waitFor(async () => expect(await names()).toEqual(["ada"]), { timeout: patient(45_000) });
  });

  test("a certificate that is renewed is shown from the next poll on; one that is half renewed is said and tried again", async () => {
    const url = await serve({ requestCert: true, rejectUnauthorized: true, ca: files.text("ca.pem") });
    const folder = join(rig.folder, "renewed");
    mkdirSync(folder);
    const other = new Certificates(folder);
    other.make("own");
    const [certFile, keyFile] = [other.path("own.pem"), other.path("own.key")];
    await start({ url, caFile: files.path("ca.pem"), certFile, keyFile });
    await says(new RegExp(PLACE));
    writeFileSync(certFile, files.text("node-1.pem"));
    await says(/^error documents: .*own\.key is not the key of the certificate in .*own\.pem; name/);
    expect(await names()).toEqual([]);
    writeFileSync(keyFile, files.text("node-1.key"));
    await vi.waitFor(async () => expect(await names()).toEqual(["ada"]), { timeout: patient(45_000) });
    await says(/^info documents: works again$/);
  });
});
