package chat

// Fields are those that are known.
var Fields = fields
