import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { commandLine, forwardedPort, isMachine, type MachineSpec } from "../src/machine/command-line.ts";
import { seedFiles } from "../src/machine/seed.ts";
import { imageName, imageTag, nodeName, nodeTag } from "../src/names.ts";

const spec: MachineSpec = {
  uuid: "8f6c1d0e-7a51-4d52-9a3d-0d6f3e0a7c11",
  name: "a,b",
  cores: 1,
  ram: 256,
  accelerator: "tcg",
  boot: null,
  parking: null,
  seedDisk: true,
  network: { kind: "user", reach: "restricted", address: "127.0.0.1", port: 40_001, guestPort: 22 },
};

describe("the arguments of QEMU", () => {
  test("say who it is, where it listens, and how much it is trusted", () => {
    const words = commandLine(spec);
    expect(forwardedPort(words)).toBe(40_001);
    expect(isMachine(words, spec.uuid)).toBe(true);
    expect(isMachine(words, "another")).toBe(false);
    expect(words).toContain("guest=a,,b");
    expect(words.join(" ")).toContain("-sandbox on,");
    expect(words.join(" ")).toContain("restrict=on");
    expect(
      commandLine({
        ...spec,
        network: { ...spec.network, reach: "outbound" } as MachineSpec["network"],
      }).join(" "),
    ).toContain("restrict=off");
  });

  test("another program's arguments are of no machine, even with the id in them", () => {
    expect(isMachine(["grep", spec.uuid], spec.uuid)).toBe(false);
    expect(forwardedPort(["grep", spec.uuid])).toBe(undefined);
  });
});

describe("the seed", () => {
  test("user data stay as they are; a key with quotes breaks nothing", () => {
    const keys = ['ssh-ed25519 AAAA "a: b"'];
    const files = seedFiles({
      uuid: spec.uuid,
      hostname: "np1",
      authorizedKeys: keys,
      userData: "#!/bin/sh\n",
    });
    expect(files["user-data"]).toBe("#!/bin/sh\n");
    expect(JSON.parse(files["meta-data"] as string)).toEqual({
      "instance-id": spec.uuid,
      "local-hostname": "np1",
      "public-keys": keys,
    });
    expect(JSON.parse((files["vendor-data"] as string).replace("#cloud-config\n", ""))).toMatchObject({
      ssh_authorized_keys: keys,
    });
  });
});

describe("names of folders", () => {
  const text = fc.string({ unit: "grapheme", minLength: 1 }).filter((part) => part.isWellFormed());
  const nodeId = fc.integer({ min: 0, max: 9_999_999_999 }).map((id) => String(id).padStart(10, "0"));

  test("give the tag back, and are one folder's name each", () => {
    const tags = fc.record({ installation: text, provider: text, pool: text, nodeId });
    fc.assert(
      fc.property(tags, (tag) => {
        const name = nodeName(tag);
        expect(name).not.toMatch(/\/|^\./);
        expect(nodeTag(name)).toEqual(tag);
        expect(imageTag(name)).toBe(null);
      }),
    );
  });

  test("of images likewise", () => {
    const tags = fc.record({
      installation: text,
      provider: text,
      image: text,
      buildId: text,
      uploadId: text,
    });
    fc.assert(
      fc.property(tags, (tag) => {
        expect(imageTag(imageName(tag))).toEqual(tag);
        expect(nodeTag(imageName(tag))).toBe(null);
      }),
    );
  });

  test("of other programs' folders give no tag", () => {
    for (const name of ["lost+found", "a,b,c,d", "%,b,c,0000000001", ".a,b,c,0000000001"])
      expect(nodeTag(name)).toBe(null);
  });
});
