package timeline

const childFile = "TIMELINE_CHILD"

func child(string) {}
