import { generateKeyPairSync } from "node:crypto";
import type { Random } from "@nodeyard/runtime";
import type { DocumentEndpoint } from "@nodeyard/sliver";
import {
  newSigningKeys,
  rotateSigningKeys,
  type SigningKeys,
  type SliverSpecInput,
  signerOf,
  signText,
} from "@nodeyard/sliver-protocol";
import { pick } from "../streams.ts";

const NODE = "node-1";
/** How long a key is trusted after the next one replaced it, seconds. */
const OVERLAP_S = 3_600;

export interface Published {
  readonly epoch: number;
  readonly version: number;
  readonly slivers: readonly SliverSpecInput[];
  readonly text: string;
}

/**
 * A launcher that signs documents, and the server from which the sliver manager fetches them. The server has no key, so it can only lie: it
 * serves an older document, another node's, one that somebody else signed or that was changed, half of one, or none.
 */
export class DocumentServer implements DocumentEndpoint {
  /** All documents that the launcher ever signed for this node, oldest first. */
  readonly published: Published[] = [];
  /** Chance that an answer is a lie. */
  lies = 0;
  /** The newest version whose report arrived: the node must have it from then on. */
  acknowledged = { epoch: 0, number: 0 };
  readonly #random: Random;
  readonly #now: () => number;
  readonly #onLie: () => void;
  #keys: SigningKeys = newSigningKeys(generateKeyPairSync("ed25519").privateKey);
  readonly #stranger = newSigningKeys(generateKeyPairSync("ed25519").privateKey);

  /** `now`: seconds since the Unix epoch. */
  constructor(random: Random, now: () => number, onLie: () => void) {
    this.#random = random;
    this.#now = now;
    this.#onLie = onLie;
  }

  /** The key set and settings with which a node is enrolled. */
  get keySet(): SigningKeys["keySet"] {
    return this.#keys.keySet;
  }

  /** `takesOver`: another writer, with a higher epoch. */
  publish(slivers: readonly SliverSpecInput[], takesOver: boolean): void {
    const last = this.published.at(-1) ?? { epoch: 1, version: 0 };
    const epoch = last.epoch + (takesOver ? 1 : 0);
    const version = takesOver ? 1 : last.version + 1;
    const text = this.#signed(NODE, epoch, version, slivers, this.#keys);
    this.published.push({ epoch, version, slivers, text });
  }

  rotate(): void {
    const { privateKey } = generateKeyPairSync("ed25519");
    this.#keys = rotateSigningKeys(this.#keys, privateKey, { now: this.#now(), overlap: OVERLAP_S });
  }

  async fetch(etag: string | undefined, signal: AbortSignal) {
    const current = this.published.at(-1);
    if (current === undefined) throw new Error("404: no document yet");
    if (this.#random.float() < this.lies) return this.#lie(current, signal);
    const tag = `${current.epoch}.${current.version}`;
    return etag === tag ? undefined : { text: this.#served(current.text), etag: tag };
  }

  async report(text: string): Promise<void> {
    if (this.#random.float() < this.lies) throw new Error("503: the report is lost");
    const { appliedEpoch, appliedVersion } = JSON.parse(text) as {
      appliedEpoch: number;
      appliedVersion: number;
    };
    this.acknowledged = { epoch: appliedEpoch, number: appliedVersion };
  }

  async #lie(current: Published, signal: AbortSignal) {
    this.#onLie();
    const { epoch, version, text } = current;
    const etag = "lie";
    const none: readonly SliverSpecInput[] = [];
    switch (Math.floor(this.#random.float() * 7)) {
      case 0:
        return { text: this.#served(pick(this.#random, this.published).text), etag };
      case 1:
        return { text: this.#served(this.#signed("node-2", epoch, version + 1, none, this.#keys)), etag };
      case 2:
        return { text: this.#served(this.#signed(NODE, epoch + 1, 1, none, this.#stranger)), etag };
      case 3: {
        const [head, body, signature] = text.split(".");
        const other = Buffer.from(body!, "base64url")
          .toString()
          .replace(/"version":\d+/, '"version":999');
        return {
          text: this.#served(`${head}.${Buffer.from(other).toString("base64url")}.${signature}`),
          etag,
        };
      }
      case 4:
        return { text: this.#served(text).slice(0, -20), etag };
      case 5:
        return new Promise<never>((_, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
        );
      default:
        throw new Error("503: try again");
    }
  }

  #served(document: string): string {
    const rotations = this.#keys.rotations.map(({ signed }) => signed);
    return JSON.stringify({ v: 1, rotations, document });
  }

  #signed(
    node: string,
    epoch: number,
    version: number,
    slivers: readonly SliverSpecInput[],
    keys: SigningKeys,
  ): string {
    const writer = `launcher-${epoch}`;
    return signText("document", { v: 1, node, epoch, version, writer, issuedAt: 0, slivers }, signerOf(keys));
  }
}
