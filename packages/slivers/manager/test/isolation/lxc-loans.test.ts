import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { SliverBusyError, SliverClient, unixTransport } from "@nodeyard/sliver-protocol";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import { spec } from "../api/rig.ts";
import { notWorse } from "./machine/beside.ts";
import { RealDaemon } from "./machine/daemon.ts";
import { type RealMachine, realMachine, SSH_OPTIONS, whyNot } from "./machine/rig.ts";
import { begin } from "./machine/slivers.ts";
import { cpuGroup, cpuTime, cpuWeight, pause } from "./machine/usage.ts";

/** Milliseconds over which a split is measured. */
const MEASURED = 4_000;
/** Nanoseconds of CPU that a load has used when it is surely under way: a login alone uses less. */
const BURNT = 1_000_000_000;
/** Between two looks at the kernel's values. */
const LOOK = 2;
/** Perl: the first argument lends to the second one, and calls it back, without an end. Prints a line when that was done. */
const ASK = `use IO::Socket::UNIX; $| = 1;
  for (my $n = 0; ; $n++) {
    my $s = IO::Socket::UNIX->new(Peer => "/run/nodeyard/api.sock") or next;
    my $loans = $n % 2 ? "" : "[\\"$ARGV[1]\\",\\"cpu_share\\",1]";
    my $body = "{\\"method\\":\\"SetLoans\\",\\"params\\":[\\"$ARGV[0]\\",[$loans]]}";
    print $s "POST /json/v2 HTTP/1.0\\r\\nContent-Length: " . length($body) . "\\r\\n\\r\\n$body";
    print "done\\n" if join("", <$s>) =~ /result/;
  }`;

describe.skipIf(whyNot() !== undefined)("loans, from a sliver's own call to the kernel", () => {
  let real: RealMachine;
  let daemon: RealDaemon;
  beforeAll(async () => {
    real = await realMachine();
    daemon = await RealDaemon.start(real, "account");
    await daemon.deliver(sliver("ada", 96), sliver("bob", 32));
    await daemon.running("ada", "bob");
    for (const name of ["ada", "bob"])
      sockets.set(name, join(real.folder, "slivers", await markOf(name), "api", "api.sock"));
  });
  afterAll(async () => {
    await daemon?.stop();
    await real?.stop();
  });

  const sliver = (name: string, cpuShare: number) =>
    spec(name, {
      generation: 1,
      keys: [real.key],
      rspec: { cpuShare, disk: 65_536, memoryCap: 131_072 },
    });
  const signal = () => AbortSignal.timeout(patient(60_000));
  // The socket that is seen inside speaks for a sliver.
  const sockets = new Map<string, string>();
  /** A sliver may make few changes at once, and then one in two seconds: a further one waits. */
  const call = async (name: string, method: string, ...params: unknown[]): Promise<unknown> => {
    const client = new SliverClient(unixTransport(sockets.get(name)!));
    for (;;)
      try {
        return await client.call(method, params, signal());
      } catch (error) {
        if (!(error instanceof SliverBusyError)) throw error;
        await pause(500);
      }
  };
  /** A call that waits until the machine has followed, and nothing else is to be done for either. */
  const followed = () => Promise.all(["ada", "bob"].map((name) => call(name, "Start", name)));
  const lend = (amount: number) =>
    call("ada", "SetLoans", "ada", [{ to: "bob", resource: "cpuShare", amount }]);
  const reportOf = async (name: string) => (await daemon.report()).slivers.find((one) => one.name === name)!;
  const markOf = async (name: string) => {
    const { index, incarnation } = await reportOf(name);
    return `ny-${index}.${incarnation}`;
  };

  test("half of the lender's surplus is in the split when the machine has followed, and his floor is never lent", async () => {
    // A former try may have lent already.
    await call("ada", "SetLoans", "ada", []);
    await followed();
    // On one CPU both, so that they fight for it whatever else the machine does.
    const loads = await Promise.all(["ada", "bob"].map(load));
    try {
      await splitIs(3);
      // His floor is 32, and half of what is above it is 32.
      expect(await lend(32)).toMatchObject({ accepted: [{ to: "bob", amount: 32 }], refused: [] });
      await followed();
      await splitIs(1);
      expect(await lend(65)).toMatchObject({ accepted: [], refused: [{ to: "bob", refusal: "floor" }] });
    } finally {
      for (const one of loads) one.kill();
    }
  });

  test("what is called back is back before the lender starts", async () => {
    const [lender, borrower] = [await markOf("ada"), await markOf("bob")];
    await call("ada", "SetLoans", "ada", []);
    await followed();
    const own = cpuWeight(borrower);
    await lend(32);
    await followed();
    const lent = cpuWeight(borrower);
    expect(lent).toBeGreaterThan(own);
    await call("ada", "Stop", "ada");
    await call("bob", "Start", "bob");
    expect(existsSync(cpuGroup(lender))).toBe(false);
    expect(cpuWeight(borrower)).toBe(lent);
    // Looked at all the time: he is never there while the other still has what is his.
    const seen = new Set<string>();
    const look = setInterval(() => {
      const holds = cpuWeight(borrower) === lent;
      seen.add(`${existsSync(cpuGroup(lender)) ? "there" : "away"}, ${holds ? "lent" : "back"}`);
    }, LOOK);
    try {
      await call("ada", "SetLoans", "ada", []);
      await call("ada", "Start", "ada");
      await daemon.running("ada");
      await pause(10 * LOOK);
    } finally {
      clearInterval(look);
    }
    expect([...seen]).toContain("there, back");
    expect([...seen]).not.toContain("there, lent");
  });

  test("beside six that change them in a loop a start takes at most a quarter more than alone", async () => {
    const eves = Array.from({ length: 6 }, (_, at) => sliver(`eve${at}`, 16));
    const all = [sliver("ada", 96), sliver("bob", 32), ...eves];
    await daemon.deliver(...all);
    await daemon.running(...all.map(({ name }) => name));
    let generation = 0;
    const start = async () => {
      const began = performance.now();
      await daemon.deliver(...all, { ...sliver("late", 16), generation: ++generation });
      await daemon.running("late");
      const took = performance.now() - began;
      await daemon.deliver(...all);
      await expect.poll(() => reportOf("late"), { timeout: patient(30_000) }).toBe(undefined);
      return took;
    };
    const loops: ChildProcess[] = [];
    const attack = async () => {
      for (const { name } of eves) {
        const { index } = await reportOf(name);
        loops.push(begin(real, index!, `exec perl -e '${ASK}' ${name} ada`));
      }
      await Promise.all(loops.map((one) => once(one.stdout!, "data")));
    };
    const end = async () => {
      for (const one of loops.splice(0)) one.kill();
    };
    await notWorse([["start", start]], new Map(), attack, end);
  });

  /** Resolves when it is under way: a login takes longer on a busy machine. */
  async function load(name: string): Promise<ChildProcess> {
    const { login } = await reportOf(name);
    const mark = await markOf(name);
    const script = "taskset -c 0 sh -c 'while :; do :; done'";
    const args = ["-i", real.keyFile, ...SSH_OPTIONS, `${login!.user}@${login!.address}`, script];
    const child = spawn("ssh", args, { stdio: "ignore", timeout: patient(60_000) });
    const before = cpuTime(mark);
    await vi.waitUntil(() => cpuTime(mark) - before > BURNT, { timeout: patient(30_000), interval: 50 });
    return child;
  }

  /** What else the machine does disturbs one measurement; a wrong split is wrong in all. */
  const splitIs = (wanted: number) =>
    expect.poll(split).toSatisfy((is: number) => is > wanted * 0.93 && is < wanted * 1.07);

  /** CPU time of ada over that of bob, by the kernel's own count. */
  async function split(): Promise<number> {
    const marks = await Promise.all(["ada", "bob"].map(markOf));
    const before = marks.map(cpuTime);
    await pause(MEASURED);
    const [one, two] = marks.map((mark, at) => cpuTime(mark) - before[at]!);
    return one! / two!;
  }
});
