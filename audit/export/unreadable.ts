/** The file is not of the form that its name says: a finding, and no row after it can be told. */
export class Unreadable extends Error {
  override readonly name = "Unreadable";
}
