export { MUTANTS, mutantOf } from "./list.ts";
export { loadMutant } from "./load.ts";
export { type Mutant, mutated, StaleMutant } from "./mutant.ts";
export { isCaught, type MutantState, mutantsSection, readMutants, scoreOf, type Verdict } from "./state.ts";
