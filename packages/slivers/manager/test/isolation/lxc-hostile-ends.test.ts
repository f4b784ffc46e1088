import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { LxcBackEnd } from "../../src/isolation/lxc/edge/lxc-back-end.ts";
import { attackFrom, besideNeighbour } from "./machine/beside.ts";
import { WEIGHT } from "./machine/neighbours.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { bringUp, configsOf, inSliver } from "./machine/slivers.ts";

/** All of it is gone so soon after the end, milliseconds. */
const GONE = 30_000;

/** Each as root of a sliver with `nesting`; prints a line when it is done. */
const ATTACKS = {
  "freezes its processes": `F=/sys/fs/cgroup/freezer; [ -w $F ] || { F=/tmp/fz; mkdir -p $F; mount -t cgroup -o freezer x $F; }
    mkdir $F/evil && { sleep 100 & echo $! > $F/evil/cgroup.procs; echo FROZEN > $F/evil/freezer.state; }
    echo 1 > /sys/fs/cgroup/unified/cgroup.freeze; echo 1 > /sys/fs/cgroup/cgroup.freeze; echo done`,
  "makes as many groups as it can": `perl -e 'for my $g (grep { -e "$_/cgroup.procs" } "/sys/fs/cgroup", glob "/sys/fs/cgroup/*") { for (1 .. 3000) { mkdir "$g/g$_" or last } } print "done"'`,
  "makes groups deeper than a path is long": `perl -e 'for my $g (grep { -e "$_/cgroup.procs" } "/sys/fs/cgroup", glob "/sys/fs/cgroup/*") { chdir $g; for (1 .. 60) { mkdir "d" x 200 or last; chdir "d" x 200 or last } } print "done"'`,
  "kills all and leaves orphans that ignore signals": `for i in 1 2 3 4 5; do setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 1; done' >/dev/null 2>&1 </dev/null & done; echo done`,
} as const;

describe.skipIf(whyNot() !== undefined)("the end of a hostile sliver", () => {
  let real: RealMachine;
  let backEnd: LxcBackEnd;
  beforeAll(async () => {
    real = await realMachine({ weight: WEIGHT });
    backEnd = real.backEnd("account");
  });
  afterEach(async () => {
    await real.clear();
    expect(await real.leftovers()).toEqual([]);
  });
  afterAll(() => real?.stop());

  const nesting = () => ({ ...configsOf(real.key, { 1: { cpuShare: 32 } })[0]!, nesting: true });

  test.each(Object.entries(ATTACKS))("that %s comes, and leaves nothing", async (_, script) => {
    const attack = async () => expect(await inSliver(real, 1, script, "root")).toContain("done");
    await besideNeighbour(real, backEnd, { config: nesting(), attack });
  });

  test("root inside makes no groups where it could freeze or slow down what others wait for", async () => {
    await bringUp(backEnd, [nesting()]);
    const script = `for c in freezer blkio; do mkdir -p /tmp/$c; mount -t cgroup -o $c x /tmp/$c && mkdir /tmp/$c/x && echo through; done 2>/dev/null
      cd /sys/fs/cgroup; grep -w io cgroup.controllers; echo +io > cgroup.subtree_control; mkdir x && ls x/io.max; echo done`;
    const said = await inSliver(real, 1, `(${script}) 2>/dev/null`, "root");
    expect(said).toBe("done");
  });

  test("whose reads wait at a limit comes: its limits are lifted first", async () => {
    const [hostile] = configsOf(real.key, { 1: { ioRead: 4_096 } });
    const read = `dd if=/dev/zero of=/tmp/f bs=1M count=40 conv=fsync 2>/dev/null
      for i in $(seq 40); do dd if=/tmp/f of=/dev/null bs=1M count=1 skip=$((i - 1)) iflag=direct 2>/dev/null & done; sleep 1; echo reads; wait`;
    await besideNeighbour(real, backEnd, { config: hostile!, attack: () => attackFrom(real, 1, read) });
  });

  test("one that removed its interface is configured, says so, and has it again after its next start", async () => {
    const hostile = nesting();
    await bringUp(backEnd, [hostile]);
    const folder = join(real.folder, "slivers/ny-1.1");
    const to = [
      "-n",
      "ny-01",
      "-P",
      folder,
      "-f",
      join(folder, "lxc.conf"),
      "--",
      "ip",
      "link",
      "del",
      "eth0",
    ];
    expect(spawnSync("lxc-attach", to).status).toBe(0);
    const signal = AbortSignal.timeout(GONE);
    const { unenforced } = await backEnd.configure({ ...hostile, digest: "less" }, signal);
    expect(unenforced).toContainEqual(expect.stringMatching(/^network: /));
    await backEnd.stop(hostile, signal);
    await backEnd.start(hostile, signal);
    expect(await inSliver(real, 1, "echo well")).toBe("well");
    const again = await backEnd.configure(hostile, signal);
    expect(again.unenforced).not.toContainEqual(expect.stringMatching(/^network: /));
  });
});
