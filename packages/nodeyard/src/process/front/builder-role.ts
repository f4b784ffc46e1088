import type { Readiness, Work } from "../../api/index.ts";
import type { Config } from "../../config/index.ts";
import {
  builderSamples,
  type Gauge,
  gaugeOf,
  gaugeSamples,
  imageGauges,
  type StatsdSample,
  workGauges,
} from "../../metrics/index.ts";
import { connection } from "./connection.ts";
import type { Role, RoleParts } from "./role.ts";

/** What of a running builder is looked at. */
export interface LookedAt {
  readonly view: Role["known"]["view"];
  readonly working: boolean;
  readonly workers: { readonly builds: number; readonly uploads: number };
  readonly config: Config;
  progress(): readonly Work[];
}

/** A builder's figures: images, what it is at, and how it fares. */
export class BuilderRole implements Role {
  readonly known: Role["known"];
  readonly work: () => readonly Work[];
  readonly #parts: RoleParts;
  readonly #isAlone: boolean;
  readonly #builder: LookedAt;

  /** `isAlone`: no launcher in the same process tells of the same view. */
  constructor(parts: RoleParts, builder: LookedAt, isAlone: boolean) {
    this.#parts = parts;
    this.#isAlone = isAlone;
    this.#builder = builder;
    const { tree, machine } = parts;
    this.known = { view: builder.view, handles: { tree, clock: machine.clock, random: machine.random } };
    this.work = () => builder.progress();
  }

  readiness(): Readiness {
    const { ready, why } = connection(this.#parts);
    if (!ready) return { ready, why };
    if (this.#builder.working) return { ready, why: "" };
    return { ready: false, why: "the tree is being read" };
  }

  config(): Config {
    return this.#builder.config;
  }

  gauges(): readonly Gauge[] {
    const { view } = this.#builder;
    const images = this.#isAlone ? imageGauges(view) : [];
    return [...images, ...workGauges(this.work()), ...this.#workers()];
  }

  samples(): readonly StatsdSample[] {
    const { hostname } = this.#parts.machine;
    const { view, config } = this.#builder;
    const images = imageGauges(view);
    const asked = images.filter(({ name, value }) => name === "image_build_requested" && value > 0);
    const { builder } = config;
    return [
      ...gaugeSamples([...images, ...this.#workers()], hostname),
      ...builderSamples({
        host: hostname,
        work: this.work(),
        images: [...builder.images.values()].map(({ name, paused }) => ({
          image: name,
          paused: paused || (view.images.get(name)?.paused ?? false),
        })),
        uploads: [...builder.uploads].flatMap(([provider, upload]) =>
          [...upload.images].map(([image, { paused }]) => ({ image, provider, paused })),
        ),
        requests: asked.length,
      }),
    ];
  }

  async close(): Promise<void> {}

  #workers(): readonly Gauge[] {
    const { builds, uploads } = this.#builder.workers;
    return [gaugeOf("workers", builds, "build"), gaugeOf("workers", uploads, "upload")];
  }
}
