import type { Image } from "@aws-sdk/client-ec2";
import { type Clock, DriverError, SharedValues } from "@nodeyard/driver";
import { type Aws, allPages, codeOf } from "../client/index.ts";
import type { ImageSource } from "../config.ts";

/** Milliseconds until a new AMI, or a new value of a parameter, is used at the latest. */
const FRESH_MS = 300_000;

/** Resolves cloud images to AMI ids. Each launch needs the id, so lookups are shared. */
export class ImageSources {
  readonly #aws: Aws;
  readonly #known: SharedValues<string>;

  constructor(aws: Aws, clock: Clock) {
    this.#aws = aws;
    this.#known = new SharedValues(clock);
  }

  /** Rejects with `configuration` when the AMI or parameter does not exist. */
  async id(source: ImageSource, signal: AbortSignal): Promise<string> {
    if ("id" in source) return source.id;
    const load = (own: AbortSignal) =>
      "parameter" in source ? this.#parameter(source, own) : this.#newest(source, own);
    const how = { load, freshMs: FRESH_MS, staleMs: FRESH_MS };
    return this.#known.get(`image ${JSON.stringify(source)}`, how, signal);
  }

  close(): void {
    this.#known.close();
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

  /** The newest available AMI that matches. All pages are read, because EC2 does not sort. */
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
    // The newest may still be pending, or have failed.
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
