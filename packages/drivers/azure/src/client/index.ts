export { Arm, type ArmOptions } from "./arm.ts";
export { ArmError, type Fault, LoginError, NoAnswer, OddAnswer } from "./errors.ts";
export { type Around, type Identity, identityOf } from "./identity.ts";
