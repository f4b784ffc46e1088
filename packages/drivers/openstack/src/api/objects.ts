import { unlessRefused } from "@nodeyard/driver";
import { z } from "zod";
import type { Service, ServiceCall } from "../client/index.ts";

/** A kind of objects of a service. */
export interface Kind<S extends z.ZodType, M extends z.ZodType = S> {
  /** Where all of them are. Behind the slash, the name of their list in answers. */
  readonly path: `/${string}`;
  /** Where a list has more than their names. */
  readonly details?: "/detail";
  /** The name of one in bodies; absent: a body is the object itself. */
  readonly one?: string;
  /** What is read of one, and of the answer to its creation. */
  readonly schema: S;
  readonly made?: M;
  /** The filter of lists by project. */
  readonly owner?: string;
}

/** The objects of one kind in the cloud. Methods reject with the errors of `Session.send`, and with OddAnswer for an answer that lacks a field. */
export class Objects<S extends z.ZodType, M extends z.ZodType = S> {
  readonly #service: Service;
  readonly #kind: Kind<S, M>;

  constructor(service: Service, kind: Kind<S, M>) {
    this.#service = service;
    this.#kind = kind;
  }

  /** Those that the service shows, which may be more than the project's. */
  list(signal: AbortSignal, call?: ServiceCall): Promise<readonly z.infer<S>[]> {
    const { path, details = "", schema } = this.#kind;
    return this.#service.list(path.slice(1), schema, path + details, signal, call);
  }

  /** Those of the project, without what others share with it, or what an administrator sees of other projects. */
  async own(signal: AbortSignal, filters: ServiceCall["query"] = {}): Promise<readonly z.infer<S>[]> {
    const project = await this.#service.project(signal);
    const { owner = "" } = this.#kind;
    return this.list(signal, { query: project === null ? filters : { [owner]: project, ...filters } });
  }

  /** Undefined when it does not exist. */
  get(id: string, signal: AbortSignal): Promise<z.infer<S> | undefined> {
    return unlessRefused(this.#service.json(this.#body(this.#kind.schema), "GET", this.#at(id), signal));
  }

  /** Not repeated after a lost answer. */
  create(object: object, signal: AbortSignal): Promise<z.infer<M>> {
    const { path, one, schema, made = schema as unknown as M } = this.#kind;
    const json = one === undefined ? object : { [one]: object };
    return this.#service.json(this.#body(made), "POST", path, signal, { json });
  }

  /** Requests a deletion. One that does not exist is no error. */
  delete(id: string, signal: AbortSignal): Promise<void> {
    return this.#service.gone(this.#at(id), signal);
  }

  #at(id: string): string {
    return `${this.#kind.path}/${encodeURIComponent(id)}`;
  }

  #body<B extends z.ZodType>(schema: B): B {
    const { one } = this.#kind;
    if (one === undefined) return schema;
    return z.object({ [one]: schema }).transform((body) => body[one]) as unknown as B;
  }
}
