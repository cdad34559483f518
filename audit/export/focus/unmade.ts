/** Of these entries and this price list no file can be made: one that is there all the same is a finding. */
export class Unmade extends Error {
  override readonly name = "Unmade";
}
