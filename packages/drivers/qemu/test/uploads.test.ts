import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ImageTag, LabelConfig } from "@nodeyard/driver";
import { describe, expect, test } from "vitest";
import { blankDisk, Launches, type QemuRig, qemuRig, requireQemu } from "../../../../testing/qemu/index.ts";

const skip = requireQemu() !== undefined;
const TAG: ImageTag = {
  installation: Launches.installation,
  provider: "local",
  image: "built",
  buildId: "b1",
  uploadId: "0000000001",
};

describe.skipIf(skip)("machines of uploads", () => {
  const rigOf = () => {
    const label = { name: "vm", diskimage: "built", ram: 16, disk: 1 };
    const built = { diskimages: [{ name: "built" }], pools: [{ name: "main", labels: [label] }] };
    return qemuRig([], {}, built);
  };
  const upload = async (rig: QemuRig, launches: Launches) => {
    const { images } = launches.provider.offers ?? {};
    const order = { ...(await rig.image()), tag: TAG, name: "built-1", metadata: {}, progress: () => {} };
    return launches.run((context) => images!.upload(order, context));
  };

  test("an image that is retired stays with the machine that boots from it; a new one is refused", async () => {
    const rig = await rigOf();
    try {
      const launches = await Launches.open(rig);
      const id = await upload(rig, launches);
      const machine = await launches.create("0000000001", id);
      await launches.run((context) => launches.provider.offers!.images!.remove(TAG, context));
      expect(await launches.create("0000000001", id)).toEqual(machine);
      await expect(launches.create("0000000002", id)).rejects.toMatchObject({ kind: "not-found" });
    } finally {
      await rig.stop();
    }
  });

  test("an image that changed between two attempts is the one that is booted, not a part of both", async () => {
    const folder = mkdtempSync(join(tmpdir(), "nodeyard-changed-"));
    const path = blankDisk(folder);
    const rig = await qemuRig([{ name: "blank", path, format: "raw" }], { ram: 16, disk: 1 });
    try {
      const launches = await Launches.open(rig);
      const context = { signal: new AbortController().signal, externalId: null };
      const first = launches.provider.create(launches.order("0000000001"), context);
      for (let next = await first.next(); !next.done && next.value.step !== "disk"; )
        next = await first.next();
      await first.return(undefined as never);
      writeFileSync(path, Buffer.alloc(2 * 1024 * 1024));
      await launches.create("0000000001");
      const [node] = readdirSync(join(rig.folder, "nodes"));
      expect(statSync(join(rig.folder, "nodes", node as string, "base")).size).toBe(2 * 1024 * 1024);
    } finally {
      await rig.stop();
      rmSync(folder, { recursive: true });
    }
  });

  test("a disk smaller than the image is refused before anything is started", async () => {
    const rig = await rigOf();
    try {
      const launches = await Launches.open(rig);
      const id = await upload(rig, launches);
      const order = launches.order("0000000003", id);
      const small = { ...order.label, own: { ...(order.label.own as object), disk: 0.0001 } } as LabelConfig;
      const steps = (context: { signal: AbortSignal; externalId: null }) =>
        launches.provider.create({ ...order, label: small }, context);
      const failed = launches.run((context) => steps({ signal: context.signal, externalId: null }));
      await expect(failed).rejects.toMatchObject({ kind: "configuration" });
    } finally {
      await rig.stop();
    }
  });

  test("what a launcher left half copied goes when the folder is opened an hour later; what is younger stays", async () => {
    const rig = await rigOf();
    try {
      await Launches.open(rig);
      const drafts = ["copies/.old", "copies/.young", "nodes/.old", "nodes/.young"].map((name) =>
        join(rig.folder, name),
      );
      for (const draft of drafts) mkdirSync(draft);
      const hoursAgo = new Date(Date.now() - 2 * 3_600_000);
      for (const draft of drafts.filter((path) => path.endsWith("old")))
        utimesSync(draft, hoursAgo, hoursAgo);
      await Launches.open(rig);
      expect(drafts.map((draft) => existsSync(draft))).toEqual([false, true, false, true]);
    } finally {
      await rig.stop();
    }
  });

  test("another host's folder is refused by name", async () => {
    const rig = await rigOf();
    try {
      const { own } = rig.config;
      const elsewhere = { ...rig.config, own: { ...own, host: "elsewhere" } };
      await expect(rig.openAs(elsewhere)).rejects.toMatchObject({ kind: "configuration" });
      writeFileSync(join(rig.folder, "host"), "another machine id\n");
      await expect(rig.openAs(rig.config)).rejects.toMatchObject({ kind: "configuration" });
      rmSync(join(rig.folder, "host"));
    } finally {
      await rig.stop();
    }
  });
});
