/** Columns of a file that were not looked at, and why: never in silence. */
export interface Unchecked {
  columns: string[];
  why: string;
}

export const THE_LOG_IS_SILENT = "the log does not say it";
export const OTHER_COLUMNS = "its columns are not those of such a file";
export const OTHER_PARAMETERS = "it was asked for with what no such file is asked for with";
