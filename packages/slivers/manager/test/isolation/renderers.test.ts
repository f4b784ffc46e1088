import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { computeLimits, type Limits } from "../../src/core/limits.ts";
import { POLICIES } from "../../src/core/profiles.ts";
import {
  authorizedKeys,
  initScript,
  loginLines,
  nameFiles,
  sshdConfig,
  sudoersLine,
  withLine,
} from "../../src/isolation/lxc/inner-files.ts";
import { lxcConfig } from "../../src/isolation/lxc/lxc-config.ts";
import { clashes, markName, namesOf, readMarkName } from "../../src/isolation/lxc/names.ts";
import { isolationSchema } from "../../src/isolation/lxc/options.ts";
import { frameScript, removalScript, sliverScript } from "../../src/isolation/network/rules.ts";
import { shapeCommands } from "../../src/isolation/network/shape.ts";

/** Text that means something to one of the interpreters, amid text that means nothing. */
const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "\n",
        "\r",
        "\0",
        '"',
        "'",
        "`",
        "$(id)",
        "..",
        "/../",
        ";",
        "{",
        "}",
        "#",
        " ",
        "\t",
        "\\",
        ":",
        ",",
        "%s",
      ),
      fc.string({ maxLength: 8 }),
    ),
    { minLength: 1, maxLength: 6 },
  )
  .map((parts) => parts.join(""));

const KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
const names = namesOf(7, "10.213");
const plain = {
  names,
  root: "/var/lib/nodeyard-slivers/pool/slivers/ny-7.1",
  folder: "/var/lib/nodeyard-slivers/slivers/ny-7.1",
  seen: "/var/lib/nodeyard-slivers/seen",
  binds: [],
  copies: [],
  seccomp: "/var/lib/nodeyard-slivers/seccomp.policy",
  user: 4711,
  kept: [],
  console: "/var/lib/nodeyard-slivers/slivers/ny-7.1/console.log",
  group: "nodeyard-slivers/ny-7.1",
  devices: "v1" as const,
  ownGroups: false,
  nesting: false,
  ipv6: false,
  nodes: [{ from: "/srv/slivers/ny-7.1/dev/0", to: "dev/kvm", number: "c 10:232" }],
};

/** Either refused, or of the shape that the same text without the hostile part has. */
function refusedOr(render: () => string, shape: (text: string) => void): void {
  let text: string;
  try {
    text = render();
  } catch (error) {
    expect((error as { code?: string }).code).toMatch(/^sliver/);
    return;
  }
  shape(text);
}

describe("text that an interpreter reads as root", () => {
  test("LXC: a hostile path never makes another line or another option", () => {
    const lines = lxcConfig(plain).split("\n").length;
    fc.assert(
      fc.property(hostile, fc.constantFrom("root", "folder", "seen", "seccomp", "group"), (text, field) => {
        refusedOr(
          () => lxcConfig({ ...plain, [field]: `/a${text}` }),
          (config) => {
            expect(config.split("\n").length).toBe(lines);
            for (const line of config.trim().split("\n")) expect(line).toMatch(/^lxc\.[a-z0-9.-]+ = [ -~]+$/);
            for (const line of config.split("\n").filter((one) => one.startsWith("lxc.mount.entry")))
              expect(line.split(" = ")[1]!.split(" ").length).toBe(6);
            // A shell reads this one: nothing in it is a word of its language.
            expect(config).toMatch(
              /^lxc\.hook\.pre-start = \/bin\/sh -c '\/bin\/mount --bind -o [a-z,]+(?: [\w/.+-]+){2}'$/m,
            );
          },
        );
      }),
      { numRuns: 2000 },
    );
  });

  test("nft: a hostile value never makes another statement", () => {
    const rules = { ...names, connections: 5 };
    const lines = sliverScript(rules).split("\n").length;
    const removal = removalScript(rules).split("\n").length;
    const frame = { device: "eth0", network: "10.213", refuse: ["169.254.0.0/16"] };
    const frameLines = frameScript(frame).split("\n").length;
    const openLines = frameScript(frame, { device: "eth0" }).split("\n").length;
    fc.assert(
      fc.property(
        hostile,
        fc.constantFrom("device", "address", "chain"),
        fc.boolean(),
        (text, field, after) => {
          const value = after ? `${rules[field as "device"]}${text}` : text;
          refusedOr(
            () => sliverScript({ ...rules, [field]: value }) + removalScript({ ...rules, [field]: value }),
            (script) => {
              expect(script.split("\n").length).toBe(lines + removal - 1);
              // The map's own definition is the only line with a semicolon.
              const others = script.split("\n").filter((line) => !line.startsWith("add map "));
              expect(others.join("\n")).not.toMatch(/[;`$\\\0]/);
              expect(script.split(";").length).toBe(2);
            },
          );
          refusedOr(
            () => frameScript({ ...frame, device: value }),
            (script) => expect(script.split("\n").length).toBe(frameLines),
          );
          refusedOr(
            () => frameScript(frame, { device: value }),
            (script) => expect(script.split("\n").length).toBe(openLines),
          );
          refusedOr(
            () => frameScript({ ...frame, refuse: [value] }),
            (script) => expect(script.split("\n").length).toBe(frameLines),
          );
        },
      ),
      { numRuns: 2000 },
    );
  });

  test("sshd and passwd: only our logins, one line each", () => {
    fc.assert(
      fc.property(hostile, (text) => {
        for (const value of [text, `ny-01${text}`]) {
          refusedOr(
            () =>
              sshdConfig([value], { cpuCap: 0 }) +
              initScript(value, { cpuCap: 1500 }, true) +
              Object.values(loginLines(value)).join("\n"),
            () => expect(value).toMatch(/^(?:root|ny-\d{2,4})$/),
          );
        }
      }),
      { numRuns: 2000 },
    );
    expect(loginLines("ny-07").passwd.split(":")).toHaveLength(7);
  });

  test("hosts, hostname and sudoers: one name and one address", () => {
    fc.assert(
      fc.property(hostile, fc.boolean(), (text, after) => {
        const user = after ? `ny-01${text}` : text;
        const address = after ? `10.213.0.1${text}` : text;
        refusedOr(
          () =>
            nameFiles(user, "10.213.0.1").hosts + nameFiles(user, "10.213.0.1").hostname + sudoersLine(user),
          () => expect(user).toMatch(/^(?:root|ny-\d{2,4})$/),
        );
        refusedOr(
          () => nameFiles("ny-01", address).hosts,
          (written) => expect(written).toMatch(/^127\.0\.0\.1 localhost\n[\d.]{7,15} ny-01\n$/),
        );
      }),
      { numRuns: 2000 },
    );
    expect(nameFiles("ny-01", "10.213.0.1")).toEqual({
      hostname: "ny-01\n",
      hosts: "127.0.0.1 localhost\n10.213.0.1 ny-01\n",
    });
  });

  test("tc: a hostile value never makes another command", () => {
    const { net } = computeLimits(new Map([["a", POLICIES.v2.defaults]]), { cpu: 1000, link: 1e9 }).get("a")!;
    const limits = { net } as Limits;
    const words = shapeCommands(names, limits).map(({ text }) => text.split(" ").length);
    fc.assert(
      fc.property(hostile, fc.constantFrom("device", "address"), fc.boolean(), (text, field, after) => {
        const value = after ? `${names[field as "device"]}${text}` : text;
        refusedOr(
          () =>
            shapeCommands({ ...names, [field]: value }, limits)
              .map((line) => line.text)
              .join("\n"),
          (lines) => {
            expect(lines.split("\n").map((line) => line.split(" ").length)).toEqual(words);
            expect(lines).not.toMatch(/[;`$\\\0"'#]/);
          },
        );
      }),
      { numRuns: 2000 },
    );
  });

  test("authorized_keys: a key or nothing, never an option", () => {
    expect(authorizedKeys([KEY])).toBe(`${KEY}\n`);
    fc.assert(
      fc.property(hostile, fc.constantFrom("before", "after", "within"), (text, where) => {
        const line =
          where === "before"
            ? `${text} ${KEY}`
            : where === "after"
              ? `${KEY}${text}`
              : KEY.replace("AAAAC", text);
        refusedOr(
          () => authorizedKeys([line]),
          (written) => expect(written).toMatch(/^ssh-ed25519 [A-Za-z0-9+/]+={0,2}\n$/),
        );
      }),
      { numRuns: 2000 },
    );
  });

  test("what an image has under the login's name gives way, the rest stays", () => {
    const line = loginLines("ny-01").passwd;
    expect(withLine("root:x:0:0::/root:/bin/sh\nny-01:x:0:0::/:/bin/sh\n", line)).toBe(
      `root:x:0:0::/root:/bin/sh\n${line}\n`,
    );
  });

  test("options: what reaches an interpreter has a grammar", () => {
    fc.assert(
      fc.property(hostile, (text) => {
        for (const some of [
          { folder: text },
          { folder: `/a${text}` },
          { images: { debian: { debian: text } } },
          { outbound: { device: text } },
          { network: text },
        ]) {
          const result = isolationSchema.safeParse(some);
          if (result.success) expect(JSON.stringify(result.data)).not.toMatch(/\\n|\\"|\/\.\.?[/"]|[;$`'# ]/);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe("names", () => {
  test("the mark tells whose it is, and nothing else is a mark", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4000 }), fc.nat(), (index, incarnation) => {
        expect(readMarkName(markName({ index, incarnation }))).toEqual({ index, incarnation });
      }),
    );
    for (const name of [
      "ny-0.1",
      "ny-01.1",
      "ny-4001.1",
      "ny-1",
      "ny-1.01",
      "ny-1.1.new",
      "x",
      "ny-1.-1",
      "ny-1.1\n",
    ])
      expect(readMarkName(name), name).toBeUndefined();
  });

  test("no two slivers share an id, an address, a device or a login, and none is a host's", () => {
    const all = Array.from({ length: 4000 }, (_, at) => namesOf(at + 1, "10.213"));
    for (const key of ["user", "uid", "device", "inner", "address", "chain"] as const)
      expect(new Set(all.map((one) => one[key])).size).toBe(4000);
    for (const one of all) expect(Math.max(one.device.length, one.inner.length)).toBeLessThanOrEqual(15);
    expect(all.at(-1)!.idBase + 65_535).toBeLessThan(2 ** 31 - 2);
    expect(all.every(({ idBase }, at) => idBase === all[0]!.idBase + at * 65_536)).toBe(true);
  });

  test("ids that the host assigned to another user are seen", () => {
    expect(clashes("root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/x\n", false)).toBeUndefined();
    expect(clashes("lxd:100000:1000000000\n", true)).toBeUndefined();
    expect(clashes("greedy:100000:4000000000\n", true)).toBe("greedy");
    expect(clashes(`clash:x:${names.uid}:1::/:/x\n`, false)).toBe("clash");
  });
});
