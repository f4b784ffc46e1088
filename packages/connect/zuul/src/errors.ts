import { errorClass } from "@nodeyard/runtime";

/** A record of Zuul has another form than the releases that this Nodeyard knows write. */
export class ZuulRecordError extends errorClass("connect.zuul_record") {}
