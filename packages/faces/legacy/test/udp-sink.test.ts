import { createSocket, type Socket } from "node:dgram";
import type { AddressInfo } from "node:net";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { memoryLog } from "@nodeyard/telemetry";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../../pool/launcher/test/rig.ts";
import { UdpSink } from "../src/index.ts";

describe("lines by UDP, to a real socket", () => {
  let server: Socket;
  let port: number;
  const datagrams: string[] = [];
  beforeAll(async () => {
    server = createSocket("udp4").on("message", (bytes) => void datagrams.push(bytes.toString()));
    await new Promise<void>((resolve) => server.bind(0, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => void server.close());

  const handles = () => ({ clock: systemClock, random: systemRandom, log: memoryLog() });
  const lines = (count: number) => Array.from({ length: count }, (_, at) => `nodepool.test.${at}:1|g`);

  test("all arrive, in datagrams below 512 bytes, also those sent right before the end", async () => {
    const sink = new UdpSink({ host: "localhost", port }, handles());
    // A name takes a moment: until it is known lines are dropped, and counted.
    await until("a line arrives", () => {
      sink.send(["first:1|c"]);
      return datagrams.length > 0;
    });
    datagrams.splice(0);
    sink.send(lines(100));
    await sink.close();
    await until("all arrive", () => datagrams.join("\n").includes("nodepool.test.99"));
    const arrived = datagrams
      .flatMap((datagram) => datagram.split("\n"))
      .filter((line) => !line.startsWith("first"));
    expect(arrived).toEqual(lines(100));
    for (const datagram of datagrams) expect(datagram.length).toBeLessThan(512);
  });

  test("a server that has IPv6 alone gets them", async () => {
    const six = createSocket("udp6");
    const arrived: string[] = [];
    six.on("message", (bytes) => void arrived.push(bytes.toString()));
    await new Promise<void>((resolve) => six.bind(0, "::1", resolve));
    const sink = new UdpSink({ host: "::1", port: six.address().port }, handles());
    await until("a line arrives", () => {
      sink.send(["first:1|c"]);
      return arrived.length > 0;
    });
    await sink.close();
    six.close();
  });

  test("a name that cannot be resolved costs lines and one warning, and stops nothing", async () => {
    const own = handles();
    const sink = new UdpSink({ host: "no-such-host.invalid", port }, own);
    await until("it is told", () => own.log.lines.length > 0);
    sink.send(lines(10));
    await sink.close();
    expect(sink.lost).toBe(10);
    expect(own.log.lines).toMatchObject([{ level: "warn", facts: { host: "no-such-host.invalid" } }]);
  });

  test("more lines than it holds are dropped, and counted", async () => {
    const sink = new UdpSink({ host: "no-such-host.invalid", port }, handles());
    sink.send(lines(30_000));
    expect(sink.lost).toBe(10_000);
    await sink.close();
  });
});
