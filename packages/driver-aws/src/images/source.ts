import type { Image } from "@aws-sdk/client-ec2";
import { type Clock, DriverError, SharedValue } from "@nodeyard/driver";
import { type Aws, allPages, codeOf } from "../client/index.ts";
import type { ImageSource } from "../config.ts";

/** Milliseconds until a new AMI, or a new value of a parameter, is used at the latest. */
const FRESH_MS = 300_000;

/** Resolves cloud images to AMI ids. Each launch needs the id, so lookups are shared. */
export class ImageSources {
  readonly #aws: Aws;
  readonly #clock: Clock;
  readonly #known = new Map<string, SharedValue<string>>();

  constructor(aws: Aws, clock: Clock) {
    this.#aws = aws;
    this.#clock = clock;
  }

  /** Rejects with `configuration` when the AMI or parameter does not exist. */
  async id(source: ImageSource, signal: AbortSignal): Promise<string> {
    if ("id" in source) return source.id;
    const key = JSON.stringify(source);
    const known = this.#known.get(key) ?? this.#lookup(source);
    this.#known.set(key, known);
    return known.get(signal);
  }

  close(): void {
    for (const one of this.#known.values()) one.close();
  }

  #lookup(source: Exclude<ImageSource, { readonly id: string }>): SharedValue<string> {
    return new SharedValue({
      clock: this.#clock,
      what: "id of an image",
      freshMs: FRESH_MS,
      staleMs: FRESH_MS,
      load: (signal) =>
        "parameter" in source ? this.#parameter(source, signal) : this.#newest(source, signal),
    });
  }

  async #parameter({ parameter }: { readonly parameter: string }, signal: AbortSignal): Promise<string> {
    const found = await this.#aws
      .ssm((ssm, to) => ssm.getParameter({ Name: parameter }, to), signal)
      .catch((error: unknown) => {
        if (codeOf(error) !== "ParameterNotFound") throw error;
      });
    const value = found?.Parameter?.Value ?? "";
    // Public parameters of container services contain JSON with the id.
    const [id] = /\bami-[0-9a-f]+\b/.exec(value) ?? [];
    if (id !== undefined) return id;
    const why =
      found === undefined ? "is not there" : `holds ${JSON.stringify(value.slice(0, 80))}, and no AMI`;
    throw new DriverError(
      "configuration",
      `parameter ${parameter} of Systems Manager ${why}; correct image-parameter`,
    );
  }

  async #newest(
    { filters, owners }: Extract<ImageSource, { readonly filters: unknown }>,
    signal: AbortSignal,
  ): Promise<string> {
    const request = {
      Filters: filters.map(({ name, values }) => ({ Name: name, Values: [...values] })),
      ...(owners.length === 0 ? {} : { Owners: [...owners] }),
    };
    const images = await allPages(
      (token) => this.#aws.ec2((ec2, to) => ec2.describeImages({ ...request, ...token }, to), signal),
      ({ Images }) => Images,
    );
    const usable = images.filter(({ State = "available" }) => State === "available");
    // ISO 8601 in one form: texts sort like times.
    const date = ({ CreationDate = "" }: Image) => CreationDate;
    const newest = usable.reduce<Image | undefined>(
      (a, b) => (a === undefined || date(b) > date(a) ? b : a),
      undefined,
    );
    if (newest?.ImageId !== undefined) return newest.ImageId;
    throw new DriverError(
      "configuration",
      `no image matches image-filters ${JSON.stringify(filters)}; correct them`,
    );
  }
}
