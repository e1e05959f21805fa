-- Fire the slots of schedules that are due, if this sidecar is or becomes the one that does so.
SELECT held, leads, taken, started FROM connector._fire_schedules($1)
