import type {
  ExternalId,
  ImageStore,
  ImageTag,
  NodeUse,
  Provider,
  Resource,
  UploadOrder,
} from "@nodeyard/driver";
import { DriverError } from "@nodeyard/driver";
import { Bench, OTHER_INSTALLATION, type TestKit, type With } from "./rig.ts";

/** Tests of the optional features that a provider offers. */
export function offerTests({ test, expect }: TestKit, run: With): void {
  test(
    "zones, if offered, are named once each, sorted, at least one, and the same again",
    run(async (bench) => {
      const { zones } = (await bench.open()).offers ?? {};
      if (zones === undefined) return;
      const list = () => bench.call((signal) => zones.list(bench.rig.pool, signal));
      const names = await list();
      // The scheduler chooses among these: without any, no request could be placed.
      expect(names.length).toBeGreaterThan(0);
      expect(names).toEqual([...new Set(names)].sort());
      expect(await list()).toEqual(names);
      const reason = new DriverError("timeout", "too late");
      expect(await bench.failure(zones.list(bench.rig.pool, AbortSignal.abort(reason)))).toBe(reason);
    }),
  );

  test(
    "a type, if offered, is the same for the same label",
    run(async (bench) => {
      const { types } = (await bench.open()).offers ?? {};
      if (types === undefined) return;
      const type = types.of(bench.rig.label);
      expect(type.length).toBeGreaterThan(0);
      // A copy, because a reload of the configuration makes new objects, and the breaker of the type has to last.
      expect(types.of({ ...bench.rig.label })).toBe(type);
    }),
  );

  test(
    "prices, if offered, are amounts in a currency, and none for a type that is none",
    run(async (bench) => {
      const { prices, types } = (await bench.open()).offers ?? {};
      if (prices === undefined) return;
      const of = (type: string) => bench.call((signal) => prices.of(type, null, signal));
      expect(await of("no such type")).toBe(null);
      const price = await of(types?.of(bench.rig.label) ?? bench.rig.label.name);
      if (price === null) return;
      expect(price.perHour >= 0).toBe(true);
      expect(/^[A-Z]{3}$/.test(price.currency)).toBe(true);
    }),
  );

  test(
    "a console, if offered, can be read while the machine is there, by id and by tag, and is null afterwards",
    run(async (bench) => {
      const provider = await bench.open();
      const { console: consoles } = provider.offers ?? {};
      if (consoles === undefined) return;
      const id = "0000000042";
      const read = (externalId: ExternalId | null) =>
        bench.call((signal) => consoles.read(bench.tag(id), { signal, externalId }));
      const { externalId } = await bench.create(provider, id);
      // Some clouds show a console only after a while.
      await bench.rig.settle();
      for (const known of [externalId, null]) expect(typeof (await read(known))).toBe("string");
      await bench.remove(provider, id, externalId);
      await bench.rig.settle();
      for (const known of [externalId, null]) expect(await read(known)).toBe(null);
    }),
  );

  test(
    "a machine that is handed over, if that is offered, is so a second time; one that is not there never",
    run(async (bench) => {
      const provider = await bench.open();
      const { handover } = provider.offers ?? {};
      if (handover === undefined) return;
      const id = "0000000044";
      const ready = (externalId: ExternalId | null) =>
        bench.call((signal) => handover.ready(bench.tag(id), { signal, externalId }));
      // There is no machine yet. A node without one must not be handed out.
      expect(await bench.failure(ready(null))).toBeInstanceOf(DriverError);
      const { externalId } = await bench.create(provider, id);
      await bench.rig.settle();
      for (const known of [externalId, null, externalId]) await ready(known);
      const reconcile = (use: NodeUse) =>
        bench.call(async (signal) => handover.reconcile?.(async () => new Map([[id, use]]), signal));
      // The machine has to be ready again each time, whatever it was lent for meanwhile.
      for (const use of ["unused", "unused", "between", "used"] as const) {
        await reconcile(use);
        await ready(externalId);
      }
      const reason = new DriverError("timeout", "too late");
      const late = { signal: AbortSignal.abort(reason), externalId };
      expect(await bench.failure(handover.ready(bench.tag(id), late))).toBe(reason);
      await bench.remove(provider, id, externalId);
    }),
  );
}

/** Tests of the image store, if the provider has one and the rig provides an image. */
export function imageTests({ test, expect }: TestKit, run: With): void {
  const withStore = (body: (bench: Bench, uploads: Uploads) => Promise<void>) =>
    run(async (bench) => {
      const provider = await bench.open();
      if (provider.offers?.images === undefined || bench.rig.image === undefined) return;
      await body(bench, new Uploads(bench, provider));
    });

  test(
    "an uploaded image is listed with its tag, its id saved before the end, and its whole size reported",
    withStore(async (bench, uploads) => {
      const format = (await bench.rig.image?.())?.format ?? "";
      expect(uploads.store.formats.includes(format)).toBe(true);
      const { id, saved, sent, size } = await uploads.upload("0000000001");
      // The saved id is what the builder has after a crash.
      expect(saved).toEqual(id);
      expect(sent).toBe(size);
      await bench.rig.settle();
      const listed = await bench.call((signal) => uploads.provider.list(signal));
      const mine = listed.filter(({ imageTag }) => imageTag?.uploadId === "0000000001");
      expect(mine.map(({ type, tag, imageTag }) => ({ type, tag, imageTag }))).toEqual([
        { type: "image", tag: null, imageTag: uploads.tag("0000000001") },
      ]);
      expect(mine[0]?.id).toEqual(id);
    }),
  );

  test(
    "a second upload of one tag leaves one image; removing it twice, and by no id, ends normally",
    withStore(async (_bench, uploads) => {
      const first = await uploads.upload("0000000002");
      for (const saved of [first.id, null]) {
        await uploads.upload("0000000002", saved);
        expect((await uploads.imagesOf("0000000002")).length).toBe(1);
      }
      for (const saved of [null, first.id, null]) await uploads.remove("0000000002", saved);
      expect(await uploads.imagesOf("0000000002")).toEqual([]);
    }),
  );

  for (const stored of [true, false]) {
    test(
      `a crash at every yield of an upload, the checkpoint ${stored ? "stored" : "lost"}: one image, then none`,
      withStore(async (bench) => {
        for (let crash = 1; crash <= 20; crash++) {
          const id = String(crash).padStart(10, "0");
          const left = await new Uploads(bench, await bench.open()).cutOff(id, crash, { stored });
          const next = new Uploads(bench, await bench.open());
          const again = await next.upload(id, left.externalId);
          expect((await next.imagesOf(id)).map((image) => image.id)).toEqual([again.id]);
          await next.remove(id, stored ? again.id : null);
          expect(await next.imagesOf(id)).toEqual([]);
          if (left.ended) return;
        }
      }),
    );
  }

  test(
    "an upload that is cancelled within any step leaves nothing that a removal by tag does not find",
    withStore(async (bench, uploads) => {
      for (let cancel = 1; cancel <= 20; cancel++) {
        const id = String(cancel).padStart(10, "0");
        const left = await uploads.cutOff(id, cancel, { abort: true });
        await bench.rig.settle();
        await uploads.remove(id, null);
        await bench.rig.settle();
        expect(await uploads.imagesOf(id)).toEqual([]);
        if (left.ended) return;
      }
    }),
  );

  test(
    "images of another installation and of another upload stay, even when their id is given",
    withStore(async (bench, uploads) => {
      const other = new Bench(bench.rig, OTHER_INSTALLATION);
      const theirs = new Uploads(other, await other.open());
      const [mine, its] = [await uploads.upload("0000000003"), await theirs.upload("0000000003")];
      const later = await uploads.upload("0000000004");
      await uploads.remove("0000000003", its.id);
      expect(await uploads.imagesOf("0000000003")).toEqual([]);
      expect((await theirs.imagesOf("0000000003")).map(({ id }) => id)).toEqual([its.id]);
      await uploads.remove("0000000003", later.id);
      expect((await uploads.imagesOf("0000000004")).map(({ id }) => id)).toEqual([later.id]);
      expect(JSON.stringify(mine.id) === JSON.stringify(its.id)).toBe(false);
    }),
  );

  test(
    "a leaked image is removed as a resource, twice",
    withStore(async (bench, uploads) => {
      await uploads.upload("0000000005");
      const [leaked] = await uploads.imagesOf("0000000005");
      // A sweep passes resources that it got from a list, so wait until the image is listed.
      await bench.rig.settle();
      for (let twice = 0; twice < 2; twice++)
        await bench.call((signal) => uploads.provider.removeResource(leaked as Resource, signal));
      expect(await uploads.imagesOf("0000000005")).toEqual([]);
    }),
  );
}

/**
 * Uploads and removals of the image of one bench, in the way of the builder: with checkpoints, and again after temporary errors.
 */
class Uploads {
  readonly provider: Provider;
  readonly store: ImageStore;
  readonly #bench: Bench;

  constructor(bench: Bench, provider: Provider) {
    this.#bench = bench;
    this.provider = provider;
    this.store = provider.offers!.images!;
  }

  tag(uploadId: string): ImageTag {
    const { installation, rig } = this.#bench;
    return { installation, provider: rig.providerName, image: "conformance", buildId: "b1", uploadId };
  }

  async upload(uploadId: string, known: ExternalId | null = null) {
    let saved = known;
    let sent = -1;
    const order = await this.#order(uploadId, (bytes) => {
      sent = bytes;
    });
    const id = await this.#bench.persist(() =>
      this.#bench.run(
        (context) => this.store.upload(order, context),
        saved,
        async (externalId) => {
          saved = externalId;
        },
      ),
    );
    return { id, saved, sent, size: order.size };
  }

  async remove(uploadId: string, externalId: ExternalId | null): Promise<void> {
    await this.#bench.persist(() =>
      this.#bench.run((context) => this.store.remove(this.tag(uploadId), context), externalId),
    );
  }

  /** The images in the cloud that carry the tag. */
  async imagesOf(uploadId: string): Promise<readonly Resource[]> {
    const { installation } = this.#bench;
    return (await this.#bench.truth(this.provider)).filter(
      ({ type, imageTag }) =>
        type === "image" && imageTag?.uploadId === uploadId && imageTag.installation === installation,
    );
  }

  /** As `Bench.cutOff`. */
  async cutOff(
    uploadId: string,
    yields: number,
    how: { readonly stored?: boolean; readonly abort?: boolean },
  ) {
    const order = await this.#order(uploadId, () => {});
    return this.#bench.cutOff((context) => this.store.upload(order, context), yields, how);
  }

  async #order(uploadId: string, progress: (sent: number) => void): Promise<UploadOrder> {
    const image = await this.#bench.rig.image!();
    const name = `conformance-${uploadId}`;
    return { ...image, tag: this.tag(uploadId), name, metadata: { os: "linux" }, progress };
  }
}
