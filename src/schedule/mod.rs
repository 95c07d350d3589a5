//! When something is due: an interval, or a cron expression in a named time zone, with what that means on the nights when clocks change. Pure:
//! every question comes with its moment.
