import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer as createHttp, type RequestListener, type Server } from "node:http";
import { createServer as createHttps } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededRandom } from "@nodeyard/runtime";
import { type KeySet, type Signer, signText } from "@nodeyard/sliver-protocol";
import { afterEach, describe, expect, test } from "vitest";
import { httpPlace } from "../../src/sources/edge/http.ts";
import { type DocumentEndpoint, type Fetched, SignedSource } from "../../src/sources/signed.ts";
import { signerOf, spec } from "../api/rig.ts";
import { Rig } from "../manager/rig.ts";

const PERIOD = 60_000;
const k1 = signerOf("k1");
const k2 = signerOf("k2");
const setOf = (version: number, ...keys: (typeof k1)[]): KeySet => ({
  v: 1,
  version,
  keys: keys.map(({ kid, x }) => ({ kid, x })),
});

interface Served {
  readonly version: number;
  readonly names?: readonly string[];
  readonly node?: string;
  readonly signer?: Signer;
  readonly rotations?: readonly string[];
}

function served({ version, names = [], node = "node-1", signer = k1, rotations = [] }: Served): string {
  const slivers = names.map((name) => spec(name));
  const document = signText("document", { v: 1, node, epoch: 1, version, issuedAt: 0, slivers }, signer);
  return JSON.stringify({ v: 1, rotations, document });
}

/** A node that polls a place that the test is. */
class Polled extends Rig {
  readonly asked: { readonly at: number; readonly etag: string | undefined }[] = [];
  readonly reports: { readonly appliedVersion: number; readonly slivers: readonly unknown[] }[] = [];
  answer: () => Fetched | undefined = () => undefined;
  reportFails = false;
  source!: SignedSource;

  async begin(keySet = setOf(1, k1)): Promise<this> {
    await this.start();
    await this.manager.change((state) => ({ state: { ...state, keySet }, result: 0 }));
    const place: DocumentEndpoint = {
      fetch: async (etag) => {
        this.asked.push({ at: this.clock.monotonic(), etag });
        return this.answer();
      },
      report: async (text) => {
        if (this.reportFails) throw new Error("report refused");
        this.reports.push(JSON.parse(text));
      },
    };
    const log = { info: () => undefined, error: (text: string) => void this.log.push(text) };
    const random = seededRandom(3);
    this.source = new SignedSource({
      manager: this.manager,
      place,
      clock: this.clock,
      random,
      log,
      period: PERIOD,
    });
    this.source.start();
    return this;
  }

  serve(what: Served, etag?: string): void {
    this.answer = () => ({ text: served(what), etag });
  }

  async polls(count: number): Promise<void> {
    const until = this.asked.length + count;
    for (let turn = 0; this.asked.length < until; turn++) {
      if (turn > 5_000) throw new Error("it does not poll");
      await this.pass(1_000);
    }
    await this.settle();
  }
}

describe("documents that are fetched", () => {
  test("are obeyed by their signature, and asked for again by their tag; what was taken is reported once", async () => {
    const rig = await new Polled().begin();
    rig.serve({ version: 1, names: ["ada", "bob"] }, '"one"');
    await rig.polls(1);
    await rig.polls(1);
    expect(rig.found).toEqual(["ada:running", "bob:running"]);
    rig.answer = () => undefined;
    await rig.polls(2);
    expect(rig.asked.map(({ etag }) => etag)).toEqual([undefined, '"one"', '"one"', '"one"']);
    expect(rig.reports.at(-1)).toMatchObject({
      appliedVersion: 1,
      slivers: [{ name: "ada" }, { name: "bob" }],
    });
    rig.serve({ version: 2, names: ["bob"] });
    await rig.polls(2);
    expect(rig.found).toEqual(["bob:running"]);
    await rig.source.close();
  });

  test("an empty one ends four slivers when it is still served half a period later, not at the tries before", async () => {
    const rig = await new Polled().begin();
    rig.serve({ version: 1, names: ["ada", "bob", "cyd", "dan"] });
    await rig.polls(1);
    rig.serve({ version: 2 });
    await rig.polls(3);
    expect(rig.clock.monotonic() - rig.asked.at(-2)!.at).toBeLessThan(PERIOD / 2);
    expect(rig.found).toHaveLength(4);
    expect(rig.reports.at(-1)).toMatchObject({ withheld: expect.stringContaining("would end 4 of 4") });
    await rig.polls(6);
    expect(rig.found).toEqual([]);
    await rig.source.close();
  });

  test("first at a time by chance, then every period and up to half more; after failures sooner, and never all at once", async () => {
    const rig = await new Polled().begin();
    const start = rig.clock.monotonic();
    await rig.polls(20);
    expect(rig.asked[0]!.at - start).toBeGreaterThan(0);
    expect(rig.asked[0]!.at - start).toBeLessThanOrEqual(30_000);
    const waits = rig.asked.slice(1).map(({ at }, index) => at - rig.asked[index]!.at);
    for (const wait of waits) {
      expect(wait).toBeGreaterThanOrEqual(PERIOD);
      expect(wait).toBeLessThanOrEqual(1.5 * PERIOD);
    }
    expect(new Set(waits).size).toBeGreaterThan(15);
    rig.answer = () => {
      throw new Error("nobody there");
    };
    await rig.polls(12);
    const failing = rig.asked.slice(-11).map(({ at }, index) => at - rig.asked.at(index - 12)!.at);
    expect(failing[0]).toBeLessThan(5_000);
    for (const wait of failing) expect(wait).toBeLessThanOrEqual(PERIOD);
    await rig.source.close();
  });

  test("of another node, another signer, or an older version, and what is none: said, and everything stays", async () => {
    const rig = await new Polled().begin();
    rig.serve({ version: 5, names: ["ada"] });
    await rig.polls(2);
    for (const [text, why] of [
      [served({ version: 6, node: "node-2" }), /node-2/],
      [served({ version: 6, signer: k2 }), /k2/],
      [served({ version: 4 }), /older/],
      ["<html>", /documents\.url serves is not valid JSON; it begins with "<html>"/],
      ['{"v":1}', /documents\.url serves: document: /],
    ] as const) {
      rig.answer = () => ({ text, etag: '"bad"' });
      await rig.polls(1);
      expect(rig.log.at(-1), text).toMatch(why);
      expect(rig.found).toEqual(["ada:running"]);
    }
    expect(rig.asked.at(-1)!.etag, "what was refused is fetched again").not.toBe('"bad"');
    await rig.source.close();
  });

  test("bring the keys that sign them: a node that missed two rotations follows, and passes over those that it knows", async () => {
    const rig = await new Polled().begin();
    const k3 = signerOf("k3");
    const rotations = [signText("key-set", setOf(2, k2), k1), signText("key-set", setOf(3, k3), k2)];
    rig.serve({ version: 1, names: ["ada"], signer: k3, rotations });
    await rig.polls(2);
    expect(rig.found).toEqual(["ada:running"]);
    rig.serve({ version: 2, names: ["bob"], signer: k3, rotations });
    await rig.polls(2);
    expect(rig.found).toEqual(["bob:running"]);
    await rig.source.close();
  });

  test("a report that is not accepted is sent again, and delays nothing", async () => {
    const rig = await new Polled().begin();
    rig.reportFails = true;
    rig.serve({ version: 1, names: ["ada"] });
    await rig.polls(2);
    expect(rig.found).toEqual(["ada:running"]);
    rig.reportFails = false;
    await rig.polls(2);
    expect(rig.reports.at(-1)).toMatchObject({ appliedVersion: 1 });
    await rig.source.close();
  });
});

describe("the place", () => {
  const folder = mkdtempSync(join(tmpdir(), "sliver-place-"));
  let server: Server | undefined;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });
  const listen = async (made: Server): Promise<number> => {
    server = made;
    await new Promise<void>((resolve) => made.listen(0, "127.0.0.1", resolve));
    return (made.address() as { port: number }).port;
  };
  const never = new AbortController().signal;

  test("tells what is new by its tag, and takes reports", async () => {
    const got: string[] = [];
    const answer: RequestListener = (request, response) => {
      if (request.method === "PUT") {
        request.on("data", (chunk) => got.push(String(chunk)));
        request.on("end", () => response.writeHead(204).end());
      } else if (request.headers["if-none-match"] === '"a"') response.writeHead(304).end();
      else if (request.url === "/none") response.writeHead(404).end("nothing here");
      else if (request.url === "/moved") response.writeHead(302, { location: "http://127.0.0.1:1/" }).end();
      else response.writeHead(200, { etag: '"a"' }).end("text");
    };
    const base = `http://127.0.0.1:${await listen(createHttp(answer))}`;
    const place = httpPlace({ url: `${base}/node`, reportUrl: `${base}/report` }, () => ({}));
    expect(await place.fetch(undefined, never)).toEqual({ text: "text", etag: '"a"' });
    expect(await place.fetch('"a"', never)).toBeUndefined();
    await place.report!("a report", never);
    expect(got).toEqual(["a report"]);
    for (const [path, why] of [
      ["/none", /404/],
      ["/moved", /302 to http:\/\/127\.0\.0\.1:1\/; configure that URL instead/],
    ] as const)
      await expect(httpPlace({ url: base + path }, () => ({})).fetch(undefined, never)).rejects.toThrow(why);
  });

  test("is only who the given authority names", async () => {
    const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
    execFileSync(
      "openssl",
      ["req", "-x509", ...curve, "-nodes", "-days", "2", "-keyout", key, "-out", cert, ...subject],
      {
        stdio: "ignore",
      },
    );
    const tls = { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
    const port = await listen(createHttps(tls, (_, response) => response.end("text")) as unknown as Server);
    const url = `https://127.0.0.1:${port}/`;
    expect(await httpPlace({ url }, () => ({ ca: tls.cert })).fetch(undefined, never)).toMatchObject({
      text: "text",
    });
    await expect(httpPlace({ url }, () => ({})).fetch(undefined, never)).rejects.toMatchObject({
      code: "sliver.source_unreachable",
      message: expect.stringMatching(/self-signed/),
    });
    rmSync(folder, { recursive: true });
  });
});
