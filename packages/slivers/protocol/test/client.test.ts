import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { commandTransport, SliverClient, unixTransport } from "../src/index.ts";

let folder: string;
let answer = "{}";
const asked: string[] = [];
const sockets = new Set<unknown>();
const server = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk) => {
    body += chunk;
  });
  sockets.add(request.socket);
  request.on("end", () => {
    asked.push(body);
    if (answer === "silence") return;
    response.end(answer);
  });
});

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sliver-client-"));
  await new Promise<void>((resolve) => server.listen(join(folder, "s"), resolve));
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true });
});

const never = () => new AbortController().signal;

describe("the client", () => {
  const client = () => new SliverClient(unixTransport(join(folder, "s")));

  test("asks over a Unix socket and gives the result, or throws the fault with its number", async () => {
    answer = '{"result":{"cpuShare":32}}';
    expect(await client().call("GetEffectiveRSpec", ["ada"], never())).toEqual({ cpuShare: 32 });
    expect(JSON.parse(asked.at(-1)!)).toEqual({ method: "GetEffectiveRSpec", params: ["ada"] });
    answer = '{"fault":{"code":108,"message":"permission denied"}}';
    await expect(client().status(never())).rejects.toMatchObject({
      code: "sliver-protocol.fault",
      fault: 108,
    });
    // A kept connection may be closed by the other end before its next use.
    expect(sockets.size).toBe(2);
  });

  test("no server, no JSON, neither result nor fault, or no end: unreachable", async () => {
    const unreachable = { code: "sliver-protocol.unreachable" };
    await expect(new SliverClient(unixTransport(join(folder, "none"))).status(never())).rejects.toMatchObject(
      unreachable,
    );
    for (const text of ["", "<html>", "{}", "null", "[]"]) {
      answer = text;
      await expect(client().status(never()), text).rejects.toMatchObject(unreachable);
    }
    answer = "silence";
    const abort = new AbortController();
    const waiting = client().status(abort.signal);
    abort.abort(new Error("late"));
    await expect(waiting).rejects.toMatchObject(unreachable);
  });

  test("asks through a program, as ssh is one", async () => {
    const through = (...command: [string, ...string[]]) => new SliverClient(commandTransport(command));
    expect(await through("sh", "-c", `cat >/dev/null; echo '{"result":1}'`).call("X", [], never())).toBe(1);
    const unreachable = { code: "sliver-protocol.unreachable" };
    await expect(through("/no/such/program").call("X", [], never())).rejects.toMatchObject(unreachable);
    await expect(
      through("sh", "-c", "echo denied >&2; exit 255").call("X", [], never()),
    ).rejects.toMatchObject({
      ...unreachable,
      message: expect.stringContaining("exit code 255 denied"),
    });
    // As the forwarder answers while its manager starts anew, and as a manager refuses.
    const fault = (code: number) => `echo '{"fault":{"code":${code},"message":"connect: no socket"}}'`;
    await expect(through("sh", "-c", `${fault(1)}; exit 1`).call("X", [], never())).rejects.toMatchObject({
      ...unreachable,
      message: expect.stringContaining("exit code 1 connect: no socket"),
    });
    await expect(through("sh", "-c", fault(108)).call("X", [], never())).rejects.toMatchObject({
      fault: 108,
    });
    const abort = new AbortController();
    const waiting = through("sleep", "100").call("X", [], abort.signal);
    abort.abort();
    await expect(waiting).rejects.toMatchObject(unreachable);
  });
});
