import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DocumentInput, type SliverSpecInput, signText } from "@nodeyard/sliver-protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { patience, patient } from "../../../../../testing/patience.ts";
import { spec } from "../api/rig.ts";
import { DaemonRig } from "../daemon/rig.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { inSliver } from "./machine/slivers.ts";

/** One call by a client that every Debian has. */
const CLIENT = `use IO::Socket::UNIX;
my $s = IO::Socket::UNIX->new(Peer => "/run/nodeyard/api.sock") or do { print "no socket: $!"; exit };
my $body = $ARGV[0];
print $s "POST /json/v2 HTTP/1.0\\r\\nContent-Length: " . length($body) . "\\r\\n\\r\\n" . $body;
my $answer = join "", <$s>;
$answer =~ s/^.*?\\r\\n\\r\\n//s;
print $answer;`;

/** Connects and says nothing, until there is no socket any more. */
const FLOOD = `use IO::Socket::UNIX;
my $count = 0;
$count++ while $count < 1000000 and IO::Socket::UNIX->new(Peer => "/run/nodeyard/api.sock");
print $count < 1000000 ? "shut out" : "never shut out";`;

const skip = whyNot() !== undefined;

describe.skipIf(skip).each(["account", "container"] as const)(
  "what a sliver of kind %s may ask of its manager",
  (kind) => {
    const daemon = new DaemonRig();
    let real: RealMachine;
    let version = 0;

    beforeAll(async () => {
      real = await realMachine();
      await daemon.prepare();
      await daemon.configure({
        backEnd: kind,
        isolation: {
          folder: real.folder,
          cache: join(tmpdir(), "nodeyard-image-cache"),
          pool: { bytes: 1_500_000_000 },
        },
      });
      await daemon.start();
      await deliver(sliver("ada"), sliver("bob"));
      await until(async () => (await phases()).every((one) => one === "running"));
      await until(async () => [1, 2].every((index) => existsSync(socket(index))));
    });
    afterAll(async () => {
      await daemon.stop();
      await real?.stop();
    });

    const signal = () => AbortSignal.timeout(patient(60_000));
    const deliver = (...slivers: SliverSpecInput[]) => {
      const head: DocumentInput = {
        v: 1,
        node: "node-1",
        epoch: 1,
        version: ++version,
        issuedAt: 0,
        slivers,
      };
      return daemon.launcher.deliver(signText("document", head, daemon.signer), signal());
    };
    const sliver = (name: string) =>
      spec(name, {
        generation: 1,
        keys: [real.key],
        rspec: { disk: 65_536, memoryCap: 131_072, cpuShare: 64 },
      });
    const phases = async () =>
      (await daemon.launcher.status(signal())).slivers.map(({ phase }) => phase as string);
    const socket = (index: number) => join(real.folder, "slivers", `ny-${index}.${index}`, "api", "api.sock");
    const call = async (index: number, method: string, ...params: unknown[]) => {
      const body = JSON.stringify({ method, params });
      const said = await inSliver(real, index, `perl -e '${CLIENT}' '${body}'`);
      return said.startsWith("{") ? (JSON.parse(said) as Record<string, unknown>) : said;
    };

    test("its own record and loans, and nothing that is another's", async () => {
      expect(await call(1, "GetRecord")).toMatchObject({ result: { name: "ada" } });
      expect(await call(1, "SetLoans", "ada", [["bob", "cpu_share", 1]])).toEqual({ result: 1 });
      expect(await call(1, "GetLoans", "ada")).toEqual({ result: [["bob", "cpu_share", 1]] });
      // The socket says which sliver calls: the same words from the other sliver are another's.
      const denied = { fault: { code: 108 } };
      expect(await call(2, "GetLoans", "ada")).toMatchObject(denied);
      expect(await call(2, "SetLoans", "ada", [])).toMatchObject(denied);
      expect(await call(2, "GetRecord")).toMatchObject({ result: { name: "bob" } });
      expect(await call(1, "GetXIDs")).toMatchObject(denied);
      expect(await call(1, "GetSSHKeys")).toMatchObject(denied);
      expect(await call(1, "Stop", "bob")).toMatchObject(denied);
      expect(await call(1, "GetLoans", "ada")).toEqual({ result: [["bob", "cpu_share", 1]] });
    });

    test("through a folder that it can neither write to nor leave", async () => {
      const mount = await inSliver(real, 1, "grep ' /run/nodeyard ' /proc/self/mountinfo");
      expect(mount.split(" ")[5]!.split(",")).toEqual(
        expect.arrayContaining(["ro", "nosuid", "nodev", "noexec"]),
      );
      expect(await inSliver(real, 1, "ls -a /run/nodeyard | tr '\\n' ' '")).toBe(". .. api.sock");
      expect(await inSliver(real, 1, "stat -c '%u %g %a' /run/nodeyard/api.sock")).toBe("1000 1000 600");
      const root = kind === "container" ? "sudo " : "";
      for (const attempt of ["touch /run/nodeyard/x", "rm /run/nodeyard/api.sock", "chmod 777 /run/nodeyard"])
        expect(await inSliver(real, 1, `${root}${attempt} && echo through`), attempt).not.toContain(
          "through",
        );
      if (kind === "container") {
        const as = (user: string) =>
          inSliver(real, 1, `sudo setpriv --reuid=${user} --clear-groups perl -e '${CLIENT}' '{}'`);
        expect(await as("root")).toMatch(/^\{/);
        expect(await as("nobody")).toMatch(/^no socket: Permission denied/);
      }
    });

    // Calls of any kind are counted there: once is enough. Not skipped, since a run that skips proves nothing.
    if (kind === "account")
      test("a flood ends its own socket for a while, is one line of the audit log, and keeps no neighbour from calling", async () => {
        expect(await inSliver(real, 1, `perl -e '${FLOOD}'`)).toBe("shut out");
        expect(await call(2, "GetRecord")).toMatchObject({ result: { name: "bob" } });
        const refused = async () => {
          const lines = (await readFile(join(daemon.folder, "state", "audit-slivers.log"), "utf8"))
            .trim()
            .split("\n");
          return lines.map((line) => JSON.parse(line)).filter(({ verdict }) => verdict === "refused");
        };
        await until(async () => (await refused()).length > 0);
        for (const one of await refused()) expect(one).toMatchObject({ account: "ada", role: "sliver" });
        expect((await refused()).some(({ count }) => count >= 100)).toBe(true);
        await until(async () => typeof (await call(1, "GetRecord")) === "object");
      });

    test("also after it was found broken and made anew", async () => {
      const life = () => inSliver(real, 1, "cut -d' ' -f22 /proc/1/stat");
      const before = await life();
      await writeFile(join(real.folder, "slivers", "ny-1.1", "mark.json"), "{");
      await until(async () => (await life()) !== before);
      await until(async () => typeof (await call(1, "GetRecord")) === "object");
      expect(await call(1, "GetRecord")).toMatchObject({ result: { name: "ada" } });
    });

    test("also after its manager died and came again, and not after the sliver is gone", async () => {
      const life = () => inSliver(real, 1, "cut -d' ' -f22 /proc/1/stat");
      const before = await life();
      await daemon.end("SIGKILL");
      expect(await call(1, "GetRecord")).toBe("no socket: Connection refused");
      await daemon.start();
      await until(async () => typeof (await call(1, "GetRecord")) === "object");
      expect(await call(1, "GetRecord")).toMatchObject({ result: { name: "ada" } });
      expect(await life()).toBe(before);
      await daemon.end("SIGTERM");
      expect(await call(1, "GetRecord")).toBe("no socket: No such file or directory");
      await daemon.start();
      await until(async () => typeof (await call(1, "GetRecord")) === "object");

      await deliver(sliver("bob"));
      await until(async () => !existsSync(join(real.folder, "slivers", "ny-1.1")));
      expect(await call(2, "GetRecord")).toMatchObject({ result: { name: "bob" } });
      await deliver();
      await until(async () => (await real.leftovers()).length === 0);
    });

    async function until(check: () => Promise<boolean>): Promise<void> {
      for (let turn = 0; turn < 200 * patience(); turn++) {
        if (await check().catch(() => false)) return;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
      throw new Error(`it did not happen\n${daemon.errors.join("")}`);
    }
  },
);
