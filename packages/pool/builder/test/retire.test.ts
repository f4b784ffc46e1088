import { imageBuildStates, imageUploadStates } from "@nodeyard/model";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type RetireFacts, type Retirement, retire, uploadKey } from "../src/core/retire.ts";
import { whatToUpload } from "../src/core/uploads.ts";
import { newestFirst } from "../src/core/when.ts";
import { after, build, HOUR, upload } from "./support.ts";

const facts = (fields: Partial<RetireFacts>): RetireFacts => ({
  now: 100 * HOUR,
  configured: true,
  builds: [],
  uploads: [],
  providers: new Map([["p", true]]),
  candidate: null,
  rejected: new Set(),
  used: new Set(),
  ...fields,
});

describe("what is taken away", () => {
  const three = [build("a", "ready", 1), build("b", "ready", 2), build("c", "ready", 3)];

  test("the oldest of three goes: its upload first, then the build, then the record", () => {
    const all = ["a", "b", "c"].map((id, index) => upload(id, "p", 1, "ready", index));
    expect(retire(facts({ builds: three, uploads: all }))).toEqual([
      { do: "delete-upload", build: "a", provider: "p", upload: "0000000001" },
    ]);
    const going = [upload("a", "p", 1, "deleting", 9), ...all.slice(1)];
    expect(retire(facts({ builds: three, uploads: going }))).toEqual([
      { do: "delete-upload", build: "a", provider: "p", upload: "0000000001" },
      { do: "delete-build", build: "a" },
    ]);
    const marked = [build("a", "deleting", 1), ...three.slice(1)];
    expect(retire(facts({ builds: marked, uploads: all.slice(1) }))).toEqual([
      { do: "remove-build", build: "a" },
    ]);
  });

  test("a build on trial, and one that failed, take no place of a proven one", () => {
    const four = [...three, build("d", "ready", 4)];
    const all = ["a", "b", "c", "d"].map((id, index) => upload(id, "p", 1, "ready", index));
    // c failed its trial, d has one: a and b are what launchers fall back to, and d is the newest.
    expect(retire(facts({ builds: four, uploads: all, candidate: "d", rejected: new Set(["c"]) }))).toEqual([
      { do: "delete-upload", build: "c", provider: "p", upload: "0000000001" },
    ]);
    expect(retire(facts({ builds: three, uploads: all.slice(0, 3), rejected: new Set(["c"]) }))).toEqual([]);
  });

  test("the upload of a build on trial stays while no proven build has one there", () => {
    // Simulated, seed 28: the proven build was deleted by hand, and a newer one is not uploaded yet.
    const builds = [build("b", "ready", 2), build("c", "ready", 3)];
    const uploads = [upload("b", "p", 1, "ready", 2)];
    expect(retire(facts({ builds, uploads, candidate: "b" }))).toEqual([]);
    expect(retire(facts({ builds, uploads, rejected: new Set(["b"]) }))).toHaveLength(1);
  });

  test("an upload with a checkpoint waits for the host of its build, for six hours, while it is still wanted", () => {
    const builds = [build("b", "ready", 2), build("c", "ready", 3)];
    const left = (at: string, externalId: unknown, ms = 95 * HOUR) => {
      const one = upload(at, "p", 1, "uploading", ms);
      return { ...one, record: { ...one.record, externalId } };
    };
    const ends = (one: ReturnType<typeof left>, fields: Partial<RetireFacts> = {}) =>
      retire(facts({ builds, uploads: [one], ...fields })).map((end) => end.do);
    const checkpoint = { snapshot: "snap-1", blocks: 64 };
    expect(ends(left("c", checkpoint))).toEqual([]);
    expect(ends(left("c", "an-id"))).toEqual(["settle-upload"]);
    expect(ends(left("c", null))).toEqual(["settle-upload"]);
    expect(ends(left("c", checkpoint, 93 * HOUR))).toEqual(["settle-upload"]);
    expect(ends(left("c", checkpoint), { providers: new Map([["p", false]]) })).toEqual(["settle-upload"]);
    const three = [build("a", "ready", 1), ...builds];
    expect(ends(left("a", checkpoint), { builds: three })).toEqual(["settle-upload"]);

    const given = { now: 100 * HOUR, builds, formats: ["raw"], paused: false };
    const local = new Map([["c", ["raw"]]]);
    const raw = [build("c", "ready", 3, ["raw"])];
    const choice = (one: ReturnType<typeof left>) =>
      whatToUpload({ ...given, builds: raw, uploads: [one], local });
    expect(choice(left("c", checkpoint))).toMatchObject({ upload: true, resume: "0000000001" });
    expect(choice(left("c", "an-id"))).toMatchObject({ upload: true, resume: undefined });
  });

  test("what a provider boots stays while it has nothing newer; so does what a node boots from", () => {
    expect(retire(facts({ builds: three, uploads: [upload("a", "p", 1, "ready", 1)] }))).toEqual([]);
    const all = ["a", "b", "c"].map((id, index) => upload(id, "p", 1, "ready", index));
    expect(retire(facts({ builds: three, uploads: all, used: new Set(["a/p/0000000001"]) }))).toEqual([]);
  });

  test("an image or a provider's entry that left the configuration takes its uploads along, others' stay", () => {
    const uploads = [
      upload("c", "p", 1, "ready", 1),
      upload("c", "q", 1, "ready", 1),
      upload("c", "other", 1, "failed", 1),
    ];
    const providers = new Map([
      ["p", false],
      ["q", true],
    ]);
    expect(
      retire(facts({ builds: [three[2]!], uploads, providers })).map(
        (end) => "provider" in end && end.provider,
      ),
    ).toEqual(["p"]);
    expect(retire(facts({ builds: [three[2]!], uploads, providers, configured: false }))).toHaveLength(2);
  });

  test("failures are remembered, eight of them and for a day", () => {
    const failed = Array.from({ length: 10 }, (_, index) =>
      build(`f${index}`, "failed", (90 + index) * HOUR),
    );
    expect(retire(facts({ builds: failed }))).toEqual([
      { do: "delete-build", build: "f0" },
      { do: "delete-build", build: "f1" },
    ]);
    expect(retire(facts({ builds: [build("f", "failed", 75 * HOUR)] }))).toHaveLength(1);
    expect(
      retire(facts({ builds: [build("f", "failed", 99 * HOUR), build("r", "ready", 99.5 * HOUR)] })),
    ).toEqual([{ do: "delete-build", build: "f" }]);
  });

  const name = fc.constantFrom("a", "b", "c", "d");
  const provider = fc.constantFrom("p", "q", "foreign");
  const world = fc.record({
    builds: fc.uniqueArray(
      fc.tuple(name, fc.constantFrom(...imageBuildStates), fc.integer({ min: 0, max: 99 })),
      {
        selector: ([id]) => id,
      },
    ),
    uploads: fc.uniqueArray(
      fc.tuple(
        name,
        provider,
        fc.integer({ min: 0, max: 2 }),
        fc.constantFrom(...imageUploadStates),
        fc.nat(99),
      ),
      { selector: ([id, at, number]) => `${id}${at}${number}` },
    ),
    configured: fc.boolean(),
    lists: fc.boolean(),
    used: fc.uniqueArray(fc.tuple(name, provider, fc.integer({ min: 0, max: 2 }))),
  });

  test("never: the newest two ready, a foreign provider's, what a node uses; and it comes to an end", () => {
    fc.assert(
      fc.property(world, (drawn) => {
        const builds = drawn.builds.map(([id, state, at]) => build(id, state, at * HOUR));
        const uploads = drawn.uploads
          .filter(([id]) => builds.some((one) => one.id === id))
          .map(([id, at, number, state, hours]) => upload(id, at, number, state, hours * HOUR));
        const used = drawn.used.map(([id, at, number]) =>
          uploadKey(id, at, String(number).padStart(10, "0")),
        );
        const { configured, lists } = drawn;
        const providers = new Map([
          ["p", lists],
          ["q", true],
        ]);
        const given = facts({ providers, configured, used: new Set(used) });
        const newest = newestFirst(builds.filter(({ state }) => state === "ready"))
          .slice(0, 2)
          .map(({ id }) => id);
        let now: RetireFacts = { ...given, builds, uploads };
        for (let pass = 0; ; pass++) {
          expect(pass).toBeLessThan(8);
          const ends = retire(now);
          if (ends.length === 0) break;
          for (const end of ends) {
            judge(now, end, newest);
            now = { ...now, ...after(now, end) };
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  function judge(now: RetireFacts, end: Retirement, newest: readonly string[]): void {
    const own = now.uploads.filter(({ build: id }) => id === end.build);
    if (!("upload" in end)) {
      if (now.configured) expect(newest).not.toContain(end.build);
      if (end.do === "remove-build") expect(own).toEqual([]);
      return;
    }
    expect(end.provider).not.toBe("foreign");
    const at = own.find(({ provider: of, record }) => of === end.provider && record.id === end.upload);
    if (at?.record.state !== "ready") return;
    expect(now.used).not.toContain(uploadKey(end.build, end.provider, end.upload));
    if (now.configured && now.providers.get(end.provider)) expect(newest).not.toContain(end.build);
  }
});

describe("what is uploaded", () => {
  const two = [build("new", "ready", 100 * HOUR - 1000), build("old", "ready", 1)];
  const given = {
    now: 100 * HOUR,
    builds: two,
    uploads: [] as ReturnType<typeof upload>[],
    local: new Map([["new", ["qcow2"]]]),
    formats: ["raw", "qcow2"],
    paused: false,
  };
  test.each([
    ["the newest, in a format that there is", {}, { upload: true, build: "new", format: "qcow2" }],
    ["paused", { paused: true }, { upload: false, why: "paused" }],
    ["already there", { uploads: [upload("new", "p", 1, "ready", 1)] }, { upload: false, why: "done" }],
    ["its file was pruned", { local: new Map([["new", ["vhd"]]]) }, { upload: false, why: "no-format" }],
    ["on no disk of ours", { local: new Map() }, { upload: false, why: "elsewhere" }],
    [
      "the newest is elsewhere: its host comes first",
      { local: new Map([["old", ["qcow2"]]]) },
      { upload: false, why: "elsewhere", at: 100 * HOUR - 1000 + 600_000 },
    ],
    [
      "the newest does not come for long",
      { local: new Map([["old", ["qcow2"]]]), now: 101 * HOUR },
      { upload: true, build: "old", format: "qcow2" },
    ],
    [
      "it failed a moment ago",
      { uploads: [upload("new", "p", 1, "failed", 100 * HOUR - 1)] },
      { upload: false, why: "back-off", at: 100 * HOUR - 1 + 60_000 },
    ],
  ] as const)("%s", (_, fields, choice) => {
    expect(whatToUpload({ ...given, ...fields })).toEqual(choice);
  });
});
