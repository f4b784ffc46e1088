import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { VirtualClock } from "@nodeyard/runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { requireRoot } from "../../../../../testing/skipped.ts";
import { CallBudget } from "../../src/api/call-budget.ts";
import { accountServer } from "../../src/api/edge/http-server.ts";
import type { Reader, ReaderOptions } from "../../src/api/edge/reader/reader.ts";
import { OWN_IDS } from "../../src/isolation/lxc/names.ts";
import { readerIn, sliver } from "./rig.ts";

const CALL = '{"method":"Help","params":[]}';
/** Milliseconds between two signs of life. */
const PULSE = 5_000;

describe("the process that parses what slivers write", () => {
  let folder: string;
  let failures: string[];
  let heard: unknown[];
  let reader: Reader;
  let server: Server;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "nodeyard-reader-"));
    chmodSync(folder, 0o711);
    failures = [];
    heard = [];
  });
  afterEach(async () => {
    server.close();
    await reader.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const begin = async (some: Partial<ReaderOptions> = {}) => {
    reader = readerIn(join(folder, "r"), { onFailure: (line) => failures.push(line), ...some });
    const clock = new VirtualClock();
    const quiet = { audit: () => undefined, onFlood: () => undefined, onFailure: () => undefined };
    const handler = async (request: unknown) => {
      heard.push(request);
      return { status: 200, type: "text/plain", body: "done" };
    };
    server = accountServer({ handler, reader, budget: new CallBudget({ clock, ...quiet }) }, sliver("ada"));
    await new Promise<void>((resolve) => server.listen(join(folder, "s"), resolve));
  };
  const post = (body = CALL, first = "HTTP/1.1\r\nhost: x\r\nconnection: close") =>
    new Promise<string>((resolve) => {
      const socket = connect(join(folder, "s"));
      let said = "";
      socket.on("data", (part) => {
        said += part.toString();
      });
      socket.on("error", () => undefined).on("close", () => resolve(said.split("\r\n")[0]!));
      socket.write(`POST /json ${first}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    });
  const pid = () => Number(execFileSync("pgrep", ["-f", `${folder}/r/in[.]sock`], { encoding: "utf8" }));

  test("hands on calls, and why there is none", async () => {
    await begin();
    expect(await post()).toBe("HTTP/1.1 200 OK");
    expect(await post("{")).toBe("HTTP/1.1 200 OK");
    // The client of a sliver's script: without a host, which only HTTP/1.1 demands.
    expect(await post(CALL, "HTTP/1.0")).toBe("HTTP/1.1 200 OK");
    expect(await post(CALL, "HTTP/1.1")).toBe("HTTP/1.1 400 Bad Request");
    const request = { method: "POST", path: "/json" };
    expect(heard).toEqual([
      { ...request, call: { method: "Help", params: [] } },
      { ...request, wrong: "the body is not valid JSON" },
      { ...request, call: { method: "Help", params: [] } },
    ]);
  });

  test.skipIf(requireRoot())("is of no user, has no capabilities and no network, and gets none", async () => {
    await begin();
    await post();
    const status = readFileSync(`/proc/${pid()}/status`, "utf8");
    expect(/^Uid:\s+(.*)$/m.exec(status)![1]).toBe(Array(4).fill(OWN_IDS.slivers).join("\t"));
    expect(/^Groups:[ \t]*(.*)$/m.exec(status)![1]).toBe("");
    for (const set of ["CapInh", "CapPrm", "CapEff", "CapAmb"])
      expect(new RegExp(`^${set}:\\s+(.*)$`, "m").exec(status)![1]).toBe("0000000000000000");
    expect(/^NoNewPrivs:\s+(.*)$/m.exec(status)![1]).toBe("1");
    const net = readFileSync(`/proc/${pid()}/net/dev`, "utf8").trim().split("\n").slice(2);
    expect(net.map((line) => line.trim().split(":")[0])).toEqual(["lo"]);
    expect(readFileSync(`/proc/${pid()}/limits`, "utf8")).toMatch(/Max data size\s+805306368/);
  });

  test("a reader that hangs is killed, and the next one answers the next call", async () => {
    const clock = new VirtualClock();
    await begin({ clock });
    await post();
    const first = pid();
    process.kill(first, "SIGSTOP");
    const lost = post();
    while (heard.length < 1 || failures.length === 0) {
      await clock.advance(PULSE);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(await lost).toBe("");
    expect(failures).toEqual([expect.stringMatching(/^the process that reads calls ended with SIGKILL/)]);
    expect(await post()).toBe("HTTP/1.1 200 OK");
    expect(pid()).not.toBe(first);
  });

  const hostile: Readonly<Record<string, string>> = {
    "a frame of 4 GiB": "Buffer.from([255, 255, 255, 255])",
    "no JSON": "frame('}')",
    "a message of another type": `frame('{"conn":1,"answer":{"method":"POST","path":"/json","root":true},"id":1}')`,
    "a call for a number that is none": `frame('{"conn":-1,"answer":{"method":"POST","path":"/json"},"id":1}')`,
  };
  /** In place of the program: one that was taken over, with `code` for each connection `s`. */
  const taken = (code: string) => {
    const program = join(folder, "taken.mjs");
    writeFileSync(
      program,
      `import { createServer } from "node:net";
       if (process.getuid() === 0) { process.setgid(+process.argv[3]); process.setuid(+process.argv[3]); }
       const frame = (text) => { const b = Buffer.alloc(4); b.writeUInt32BE(text.length); return Buffer.concat([b, Buffer.from(text)]); };
       const say = (bytes) => process.stdout.write(bytes);
       createServer((s) => { s.on("error", () => {}); ${code} }).listen(process.argv[2], () => say(frame('{"ready":true}')));`,
    );
    return begin({ program });
  };
  test.each(Object.entries(hostile))("one that was taken over and sends %s is killed", async (_, bytes) => {
    await taken(`say(${bytes});`);
    expect(await post()).toBe("");
    await expect.poll(() => failures).toEqual([expect.stringContaining("SIGKILL")]);
    expect(heard).toEqual([]);
  });

  test("one that was taken over speaks for no connection that it does not have", async () => {
    await taken(`for (let conn = 2; conn < 50; conn++)
      say(frame(JSON.stringify({ id: conn, conn, answer: { method: "POST", path: "/json" } })));
      setTimeout(() => s.end("HTTP/1.1 299 x\\r\\n\\r\\n"), 50);`);
    expect(await post()).toBe("HTTP/1.1 299 x");
    expect(heard).toEqual([]);
    expect(failures).toEqual([]);
  });

  test("one that cannot be started is said, and connections end", async () => {
    await begin({ program: join(folder, "none.mjs") });
    expect(await post()).toBe("");
    expect(failures).toEqual([
      expect.stringMatching(/^calls of slivers cannot be read: .*(ended with 1|MODULE)/),
    ]);
  });
});
